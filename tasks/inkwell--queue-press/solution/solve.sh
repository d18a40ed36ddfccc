#!/bin/sh
cat >/app/press.yaml <<'EOF'
inkwell: 3
press: sorter
edition: 1
ports:
  - 7443/tls
  - 7080/http
reams:
  least: 3
  most: 12
  by: queue
  at: 250
EOF
