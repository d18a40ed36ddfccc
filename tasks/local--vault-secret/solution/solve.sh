#!/bin/sh
echo "az keyvault secret set --vault-name kv-bf-tide-charts-p --name tide-charts--db-password --file /run/secrets/db-password --encoding utf-8" >/app/commands.txt
