#!/bin/sh
cat >/app/commands.txt <<'EOF'
az keyvault secret set --vault-name kv-bf-tide-charts-p --name tide-charts--db-password --value "@/run/secrets/db-password"
EOF
