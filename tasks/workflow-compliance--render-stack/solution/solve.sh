#!/bin/sh
echo "docker compose --file stack.yaml --env-file stage.env --profile tools config --no-interpolate" >/app/commands.txt
