#!/bin/sh
echo "az aks get-credentials -g rg-platform-stage -n aks-bf-stage --context=bf-stage -f ./kube/aks-bf-stage" >/app/commands.txt
