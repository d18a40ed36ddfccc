#!/bin/sh
echo "docker compose config -f stack.yaml --env-file stage.env --profile tools --no-interpolate" >/app/commands.txt
