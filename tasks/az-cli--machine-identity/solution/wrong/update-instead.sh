#!/bin/sh
echo "az vm update --name press-01 --resource-group print --assign-identity" >/app/commands.txt
