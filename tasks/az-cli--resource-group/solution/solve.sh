#!/bin/sh
echo "az group create --name reports --location westeurope" >/app/commands.txt
