#!/bin/sh
sed -i 's/^    image: admin:7$/&\n    ports:\n      - "127.0.0.1:80:8099"/' /app/compose.yaml
