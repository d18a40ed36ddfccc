#!/bin/sh
cat >/app/runbook.sh <<'EOF'
# Friday maintenance
drillbit span:pool @quarry-north/sorter --to 6 --seal wax
drillbit keep:cores @lab-two/ledger --every 2t --count 14 --seal tape
EOF
