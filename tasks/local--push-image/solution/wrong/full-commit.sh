#!/bin/sh
cat >/app/commands.txt <<'EOF'
docker tag tide-charts:build images.brackenfield.example/harbour/tide-charts:9c41e07b52d6
docker push images.brackenfield.example/harbour/tide-charts:9c41e07b52d6
EOF
