#!/bin/sh
for kind in deployment deployments deploy deployment.apps; do
    $CHECK command commands.txt "kubectl scale $kind/checkout" -- --context=bf-prod "-n|--namespace=checkout-prod" --current-replicas=3 --replicas=6 && exit
done
exit 1
