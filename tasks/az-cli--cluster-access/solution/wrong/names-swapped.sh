#!/bin/sh
echo "az aks get-credentials --name harbour --resource-group tidal" >/app/commands.txt
