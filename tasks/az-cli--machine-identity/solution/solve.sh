#!/bin/sh
echo "az vm identity assign --name press-01 --resource-group print" >/app/commands.txt
