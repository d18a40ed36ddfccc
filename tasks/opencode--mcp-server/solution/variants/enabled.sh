#!/bin/sh
cat >/app/settings.json <<'EOF'
{"theme": "nord", "mcp": {"ledger": {"enabled": true, "environment": {"LEDGER_HOME": "/srv/ledger"}, "type": "local", "command": ["ledger-mcp", "--read-only"]}, "tracker": {"type": "remote", "url": "https://tracker.example/mcp"}}}
EOF
