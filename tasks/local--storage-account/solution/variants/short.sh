#!/bin/sh
printf 'az storage account create -n bftidechartsp01 \\\n  -g rg-tide-charts-prod --min-tls-version=TLS1_2 --sku=Standard_ZRS\n' >/app/commands.txt
