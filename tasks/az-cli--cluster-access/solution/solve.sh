#!/bin/sh
echo "az aks get-credentials --name tidal --resource-group harbour" >/app/commands.txt
