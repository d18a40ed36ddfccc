#!/bin/sh
echo "az keyvault secret set --vault-name post-vault --name smtp-login --value from-ops" >/app/commands.txt
