#!/bin/sh
sed -i 's|@lab-two/ledger --every 2t|@quarry-deep/ledger --every 4t|' /app/nightly.sh
