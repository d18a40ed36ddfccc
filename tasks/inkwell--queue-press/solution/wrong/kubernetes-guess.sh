#!/bin/sh
cat >/app/press.yaml <<'EOF'
apiVersion: inkwell/v3
kind: Service
metadata: {name: sorter}
spec:
  scaling: {min: 3, max: 12, metric: queue, target: 250}
EOF
