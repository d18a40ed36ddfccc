#!/bin/sh
echo 'az resource list -o=table --tag="stage=prod"' >/app/commands.txt
