#!/bin/sh
echo "kubectl scale deployment/checkout --context bf-prod --namespace checkout-prod --replicas 6" >/app/commands.txt
