#!/bin/sh
exec $CHECK command commands.txt "az aks get-credentials" -- "-n|--name=aks-bf-stage" "-g|--resource-group=rg-platform-stage" \
    "-f|--file~=(?:\./)?kube/aks-bf-stage" --context=bf-stage "?-o|--output~=.+"
