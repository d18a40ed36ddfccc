#!/bin/sh
cat >/app/settings.json <<'EOF'
{
  "model": "anthropic/claude-sonnet-4-5",
  "share": "disabled",
  "disabled_providers": [
    "openrouter"
  ]
}
EOF
