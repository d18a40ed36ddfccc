#!/bin/sh
cat >/app/commands.txt <<'EOF'
docker tag tide-charts:build images.brackenfield.example/harbour/tide-charts:20260314-9c41e07
docker push images.brackenfield.example/harbour/tide-charts:20260314-9c41e07
EOF
