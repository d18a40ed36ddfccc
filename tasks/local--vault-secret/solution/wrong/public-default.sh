#!/bin/sh
cat >/app/commands.txt <<'EOF'
az keyvault secret set --vault-name tide-charts-kv --name db-password --value "$(cat /run/secrets/db-password)"
EOF
