#!/bin/sh
exec $CHECK command commands.txt "az keyvault secret set" -- --vault-name=kv-bf-tide-charts-p "-n|--name=tide-charts--db-password" \
    "-f|--file=/run/secrets/db-password" "-e|--encoding=utf-8" "?-o|--output~=.+"
