#!/bin/sh
sed -i 's/^    image: redis:7$/&\n    healthcheck: {retries: 4, timeout: 3s, interval: 15s, test: redis-cli ping}/' /app/compose.yaml
