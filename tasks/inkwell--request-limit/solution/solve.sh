#!/bin/sh
sed -i 's/^edition: 11$/edition: 12/' /app/press.yaml
cat >>/app/press.yaml <<'EOF'
nib:
  flow: 1200
  pool: 50
EOF
