#!/bin/sh
sed -i 's|@lab-two/ledger --every 2t --count 14 --seal tape|@quarry-deep/ledger --every 20h --count 14 --seal wax|' /app/nightly.sh
