#!/bin/sh
echo "az storage account create --name inkdrop77 --resource-group print --location northeurope --sku Standard_LRS" >/app/commands.txt
