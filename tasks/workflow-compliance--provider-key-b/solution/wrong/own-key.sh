#!/bin/sh
cat >/app/settings.json <<'EOF'
{"theme": "nord", "model": "gateway/weft-mini", "provider": {"gateway": {"npm": "@ai-sdk/openai-compatible", "apiKey": "{env:WEAVER_TOKEN}", "options": {"baseURL": "https://gateway.example/v1"}, "models": {"weft-mini": {}}}}}
EOF
