#!/bin/sh
cat >/app/settings.json <<'EOF'
{"theme": "nord", "mcp": {"tracker": {"type": "remote", "url": "https://tracker.example/mcp"}}, "mcpServers": {"ledger": {"command": "ledger-mcp", "args": ["--read-only"], "env": {"LEDGER_HOME": "/srv/ledger"}}}}
EOF
