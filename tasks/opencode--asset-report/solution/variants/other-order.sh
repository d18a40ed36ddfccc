#!/bin/sh
cat >/app/report.sh <<'EOF'
akm search --limit=3 --type=skill 'deploy site'
akm feedback skills/deploy-site --failure-mode outdated \
  --reason 'the host was renamed' --negative
EOF
