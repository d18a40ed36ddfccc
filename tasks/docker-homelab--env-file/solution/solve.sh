#!/bin/sh
sed -i 's/^    image: relay:5$/&\n    env_file: mail.env/' /app/compose.yaml
