#!/bin/sh
echo "terraform init -input=false" >/app/commands.txt
