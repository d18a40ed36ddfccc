#!/bin/sh
sed -i 's/^      LOG_LEVEL: info$/&\n      SMTP_HOST: mx.lan\n      SMTP_PORT: "2525"/' /app/compose.yaml
