#!/bin/sh
sed -i -e 's/2.4/3.8/' -e '/links:/,+1d' /app/compose.yaml
