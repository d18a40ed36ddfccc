#!/bin/sh
exec $CHECK command commands.txt "az storage account create" -- "-n|--name=bftidechartsp01" "-g|--resource-group=rg-tide-charts-prod" \
    --sku=Standard_ZRS --min-tls-version=TLS1_2 "?--kind=StorageV2" "?-o|--output~=.+"
