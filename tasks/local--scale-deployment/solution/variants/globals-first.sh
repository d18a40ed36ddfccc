#!/bin/sh
echo "kubectl --context=bf-prod -n checkout-prod scale deploy/checkout --current-replicas=3 --replicas=6" >/app/commands.txt
