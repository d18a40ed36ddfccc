#!/bin/sh
cat >/app/commands.txt <<'EOF'
az resource list --query "[?type=='Microsoft.Compute/virtualMachines' && tags.stage=='prod'].name" --output tsv
EOF
