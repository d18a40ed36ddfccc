#!/bin/sh
cat >/app/settings.json <<'EOF'
{
  "theme": "nord",
  "mcp": {
    "tracker": {
      "type": "remote",
      "url": "https://tracker.example/mcp"
    },
    "ledger": {
      "type": "local",
      "command": ["ledger-mcp", "--read-only"],
      "environment": {
        "LEDGER_HOME": "/srv/ledger"
      }
    }
  }
}
EOF
