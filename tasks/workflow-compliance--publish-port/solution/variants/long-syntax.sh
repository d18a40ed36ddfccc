#!/bin/sh
sed -i 's/^    image: admin:7$/&\n    ports:\n      - target: 80\n        published: "8099"\n        host_ip: 127.0.0.1/' /app/compose.yaml
