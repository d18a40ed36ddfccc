#!/bin/sh
sed -i 's/^edition: 2$/edition: 3/' /app/press.yaml
printf 'reams:\n  least: 3\n  most: 9\n  by: cpu\n  at: 60\n' >>/app/press.yaml
