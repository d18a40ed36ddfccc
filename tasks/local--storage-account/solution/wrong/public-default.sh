#!/bin/sh
echo "az storage account create --name tidecharts --resource-group tide-charts --location westeurope --sku Standard_LRS" >/app/commands.txt
