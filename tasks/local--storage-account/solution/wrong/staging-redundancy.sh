#!/bin/sh
echo "az storage account create --name bftidechartsp01 --resource-group rg-tide-charts-prod --sku Standard_LRS --min-tls-version TLS1_2" >/app/commands.txt
