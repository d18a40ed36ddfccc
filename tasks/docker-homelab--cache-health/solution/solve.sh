#!/bin/sh
sed -i 's/^    image: redis:7$/&\n    healthcheck:\n      test: ["CMD", "redis-cli", "ping"]\n      interval: 15s\n      timeout: 3s\n      retries: 4/' /app/compose.yaml
