#!/bin/sh
exec $CHECK command commands.txt "az group create" -- "-n|--name|-g|--resource-group=reports" "-l|--location=westeurope" \
    "?-o|--output~=.*"
