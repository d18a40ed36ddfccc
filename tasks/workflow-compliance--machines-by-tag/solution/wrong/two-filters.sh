#!/bin/sh
echo "az resource list --tag stage=prod --resource-type Microsoft.Compute/virtualMachines --query [].name --output tsv" >/app/commands.txt
