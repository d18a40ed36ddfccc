#!/bin/sh
cat >/app/commands.txt <<'EOF'
# one account
az storage account create \
  -l northeurope -g print \
  --sku 'Standard_LRS' \
  --kind StorageV2 -n inkdrop77
EOF
