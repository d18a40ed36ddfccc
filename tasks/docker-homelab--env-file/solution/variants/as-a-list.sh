#!/bin/sh
sed -i 's/^    image: relay:5$/&\n    env_file:\n      - .\/mail.env/' /app/compose.yaml
