#!/bin/sh
echo "az aks get-credentials --name staging --resource-group staging" >/app/commands.txt
