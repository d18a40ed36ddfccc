#!/bin/sh
printf 'docker compose --profile=tools -f stack.yaml \\\n --env-file "stage.env" config --no-interpolate\n' >/app/commands.txt
