#!/bin/sh
echo "terraform init -backend-config=backends/prod.hcl -lockfile=readonly -input=false -reconfigure" >/app/commands.txt
