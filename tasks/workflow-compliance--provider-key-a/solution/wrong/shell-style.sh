#!/bin/sh
cat >/app/settings.json <<'EOF'
{"model": "gateway/loom-2", "provider": {"gateway": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "https://gateway.example/v1", "apiKey": "$GATEWAY_KEY"}, "models": {"loom-2": {}}}}}
EOF
