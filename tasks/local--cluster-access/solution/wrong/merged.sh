#!/bin/sh
echo "az aks get-credentials --name aks-bf-stage --resource-group rg-platform-stage" >/app/commands.txt
