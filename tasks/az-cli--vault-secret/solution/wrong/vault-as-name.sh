#!/bin/sh
echo "az keyvault secret set --name post-vault --secret-name smtp-login --value from-ops" >>/app/commands.txt
