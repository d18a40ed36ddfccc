#!/bin/sh
cat >/app/settings.json <<'EOF'
{"theme": "nord", "providers": [{"id": "attic", "name": "Attic", "endpoint": "http://attic.lan:8000/v1", "models": ["mill-large"]}]}
EOF
