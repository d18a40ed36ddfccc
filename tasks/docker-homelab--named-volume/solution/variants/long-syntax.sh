#!/bin/sh
sed -i 's/^    image: postgres:16$/&\n    volumes:\n      - type: volume\n        source: ledger-data\n        target: \/var\/lib\/postgresql\/data/' /app/compose.yaml
printf 'volumes:\n  ledger-data: {}\n' >>/app/compose.yaml
