#!/bin/sh
sed -i 's/^edition: 2$/edition: 3/' /app/press.yaml
cat >>/app/press.yaml <<'EOF'
reams:
  least: 3
  most: 9
  by: cpu
  at: 6
EOF
