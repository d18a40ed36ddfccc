#!/bin/sh
cat >/app/press.yaml <<'EOF'
inkwell: 3
press: gazette
edition: 1
ports:
  - 9443/tls
blot:
  path: /fit
  every: 12
  miss: 5
nib:
  flow: 2400
  pool: 90
reams:
  least: 2
  most: 5
  by: cpu
  at: 8
EOF
