#!/bin/sh
cat >/app/night.sh <<'EOF'
drillbit turn:key @quarry-hill/tally --cut ed25519 --seal wax
drillbit damp:feed @pit-one/crusher --share 40 --seal tape
drillbit keep:cores @quarry-hill/tally-log --every 8t --count 5 --seal wax
EOF
