#!/bin/sh
$CHECK command --of 3 --nth 1 commands.txt "az group create" -- --name=post --location=northeurope || exit
$CHECK command --of 3 --nth 2 commands.txt "az keyvault create" -- --name=post-vault --resource-group=post --location=northeurope || exit
$CHECK command --of 3 --nth 3 commands.txt "az keyvault secret set" -- --vault-name=post-vault "-n|--name=smtp-login" --value=from-ops \
    "?-o|--output~=.+"
