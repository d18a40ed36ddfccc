#!/bin/sh
sed -i 's/^edition: 5$/edition: 6/' /app/press.yaml
printf 'blot:\n  path: /ready\n  every: 4\n  miss: 2\nreams:\n  least: 2\n  most: 6\n  by: cpu\n  at: 5\n' >>/app/press.yaml
