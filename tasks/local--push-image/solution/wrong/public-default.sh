#!/bin/sh
cat >/app/commands.txt <<'EOF'
docker tag tide-charts:build registry.example.com/tide-charts:latest
docker push registry.example.com/tide-charts:latest
EOF
