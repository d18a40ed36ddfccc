#!/bin/sh
echo "terraform init -backend-config=backends/prod.hcl -lockfile=readonly -input=false -migrate-state" >/app/commands.txt
