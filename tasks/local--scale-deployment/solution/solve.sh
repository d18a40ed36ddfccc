#!/bin/sh
echo "kubectl scale deployment/checkout --context bf-prod --namespace checkout-prod --current-replicas 3 --replicas 6" >/app/commands.txt
