#!/bin/sh
cat >/app/commands.txt <<'EOF'
docker image tag tide-charts:build images.brackenfield.example/harbour/tide-charts:20260314-9c41e07
docker image push images.brackenfield.example/harbour/tide-charts:20260314-9c41e07
EOF
