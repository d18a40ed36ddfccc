#!/bin/sh
printf 'az login\naz aks get-credentials -n tidal -g harbour\n' >/app/commands.txt
