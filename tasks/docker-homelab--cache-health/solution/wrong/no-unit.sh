#!/bin/sh
sed -i 's/^    image: redis:7$/&\n    healthcheck:\n      test: ["CMD", "redis-cli", "ping"]\n      interval: 15\n      timeout: 3\n      retries: 4/' /app/compose.yaml
