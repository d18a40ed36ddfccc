#!/bin/sh
cat >/app/report.sh <<'EOF'
akm search "deploy site" --type skill --limit 3
akm feedback skill:deploy-site --negative --reason "the host was renamed" --failure-mode outdated
EOF
