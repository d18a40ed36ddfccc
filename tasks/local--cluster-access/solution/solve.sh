#!/bin/sh
echo "az aks get-credentials --name aks-bf-stage --resource-group rg-platform-stage --file kube/aks-bf-stage --context bf-stage" >/app/commands.txt
