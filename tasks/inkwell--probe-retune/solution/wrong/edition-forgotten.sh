#!/bin/sh
sed -i -e 's/^  every: 2$/  every: 9/' -e 's/^  miss: 2$/  miss: 4/' /app/press.yaml
