#!/bin/sh
cat >/app/settings.json <<'EOF'
{"theme": "nord", "model": "weft-mini", "provider": {"gateway": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "https://gateway.example/v1", "apiKey": "{env:WEAVER_TOKEN}"}, "models": {"weft-mini": {}}}}}
EOF
