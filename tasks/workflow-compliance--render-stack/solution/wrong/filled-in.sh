#!/bin/sh
echo "docker compose -f stack.yaml --env-file stage.env --profile tools config" >/app/commands.txt
