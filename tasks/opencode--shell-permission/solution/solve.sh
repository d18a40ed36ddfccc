#!/bin/sh
cat >/app/settings.json <<'EOF'
{
  "model": "anthropic/claude-sonnet-4-5",
  "permission": {
    "edit": "ask",
    "webfetch": "deny",
    "bash": {
      "*": "allow",
      "git push*": "deny"
    }
  }
}
EOF
