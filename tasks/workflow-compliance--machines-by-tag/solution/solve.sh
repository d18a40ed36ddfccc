#!/bin/sh
cat >/app/commands.txt <<'EOF'
az resource list --tag stage=prod --query "[?type=='Microsoft.Compute/virtualMachines'].name" --output tsv
EOF
