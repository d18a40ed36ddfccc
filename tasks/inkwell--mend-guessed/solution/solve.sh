#!/bin/sh
cat >/app/press.yaml <<'EOF'
inkwell: 3
press: margin
edition: 6
ports:
  - 8080/http
nib:
  flow: 300
  pool: 20
blot:
  path: /ready
  every: 4
  miss: 2
reams:
  least: 2
  most: 6
  by: cpu
  at: 5
EOF
