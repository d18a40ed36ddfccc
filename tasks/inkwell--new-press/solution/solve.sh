#!/bin/sh
cat >/app/press.yaml <<'EOF'
inkwell: 3
press: almanac
edition: 1
ports:
  - 9090/http
reams:
  least: 2
  most: 8
  by: cpu
  at: 7
EOF
