#!/bin/sh
cat >/app/compose.yaml <<'EOF'
services:
  scan:
    image: scan:9
    deploy:
      resources:
        limits:
          cpus: "0.5"
          memory: 512m
    depends_on:
      - broker
  broker:
    image: broker:4
    deploy:
      resources:
        limits:
          memory: 128m
EOF
