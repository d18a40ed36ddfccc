#!/bin/sh
cat >/app/night.sh <<'EOF'
# What the night shift runs, in this order
drillbit damp:feed @pit-one/crusher --share 40 --seal tape
drillbit turn:key @quarry-hill/tally --cut ed25519 --seal wax
drillbit keep:cores @quarry-hill/tally-log --every 8t --count 5 --seal wax
EOF
