#!/bin/sh
echo "az resource list --tag stage=prod --output table" >/app/commands.txt
