#!/bin/sh
echo "az resource list --query tags.stage=prod --output table" >/app/commands.txt
