#!/bin/sh
exec $CHECK command commands.txt "az vm identity assign" -- "-n|--name=press-01" "-g|--resource-group=print" \
    "?--identities=[system]" "?-o|--output~=.+"
