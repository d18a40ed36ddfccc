#!/bin/sh
cat >/app/settings.json <<'EOF'
{
  "theme": "nord",
  "provider": {
    "attic": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "Attic",
      "options": {
        "baseURL": "http://attic.lan:8000/v1"
      },
      "models": {
        "mill-large": {
          "name": "Mill Large"
        }
      }
    }
  }
}
EOF
