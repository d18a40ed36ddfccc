#!/bin/sh
$CHECK document policy.json --equals /tests/wanted.json || exit
$CHECK command commands.txt "az storage account management-policy create" -- --account-name=printlogs \
    "-g|--resource-group=print" "--policy~=@(?:\./)?policy\.json" "?-o|--output~=.+"
