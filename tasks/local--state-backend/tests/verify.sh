#!/bin/sh
exec $CHECK command commands.txt "terraform init" -- "-backend-config~=(?:\./)?backends/prod\.hcl" -lockfile=readonly -input=false -reconfigure \
    "?-no-color"
