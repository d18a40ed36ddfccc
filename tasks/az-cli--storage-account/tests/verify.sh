#!/bin/sh
exec $CHECK command commands.txt "az storage account create" -- "-n|--name=inkdrop77" "-g|--resource-group=print" \
    "-l|--location=northeurope" --sku=Standard_LRS "?--kind=StorageV2" "?-o|--output~=.+"
