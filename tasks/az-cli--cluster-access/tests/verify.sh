#!/bin/sh
exec $CHECK command commands.txt "az aks get-credentials" -- "-n|--name=tidal" "-g|--resource-group=harbour" "?-o|--output~=.+"
