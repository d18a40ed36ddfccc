#!/bin/sh
echo "kubectl scale deployment checkout --replicas=6" >/app/commands.txt
