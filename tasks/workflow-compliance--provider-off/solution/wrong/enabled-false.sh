#!/bin/sh
cat >/app/settings.json <<'EOF'
{"model": "anthropic/claude-sonnet-4-5", "share": "disabled", "provider": {"openrouter": {"enabled": false}}}
EOF
