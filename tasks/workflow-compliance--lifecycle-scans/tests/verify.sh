#!/bin/sh
$CHECK document policy.json --equals /tests/wanted.json || exit
$CHECK command commands.txt "az storage account management-policy create" -- --account-name=scanroom \
    "-g|--resource-group=imaging" "--policy~=@(?:\./)?policy\.json" "?-o|--output~=.+"
