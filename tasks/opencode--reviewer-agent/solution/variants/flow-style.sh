#!/bin/sh
cat >/app/reviewer.md <<'EOF'
---
mode: "subagent"
tools: {edit: false, write: false}
temperature: 0.1
description: "Reads a change and lists what is wrong with it"
---

List defects, most severe first. Change nothing.
EOF
