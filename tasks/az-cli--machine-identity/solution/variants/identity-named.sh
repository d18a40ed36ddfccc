#!/bin/sh
echo "az vm identity assign -g print -n press-01 --identities '[system]'" >/app/commands.txt
