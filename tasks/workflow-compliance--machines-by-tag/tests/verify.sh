#!/bin/sh
exec $CHECK command commands.txt "az resource list" -- --tag=stage=prod "-o|--output=tsv" \
    "--query~=\[\? *type *== *['\`]Microsoft\.Compute/virtualMachines['\`] *\]\.(?:name|\[name\])"
