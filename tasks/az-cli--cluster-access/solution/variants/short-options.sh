#!/bin/sh
printf 'az aks get-credentials \\\n  -g=harbour \\\n  -n "tidal"\n' >/app/commands.txt
