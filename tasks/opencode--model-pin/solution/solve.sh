#!/bin/sh
cat >/app/settings.json <<'EOF'
{
  "model": "anthropic/claude-sonnet-4-5",
  "small_model": "anthropic/claude-haiku-4-5",
  "theme": "nord",
  "autoupdate": false
}
EOF
