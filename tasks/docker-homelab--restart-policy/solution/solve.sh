#!/bin/sh
sed -i 's/^    image: reader:2.4$/&\n    restart: unless-stopped/' /app/compose.yaml
