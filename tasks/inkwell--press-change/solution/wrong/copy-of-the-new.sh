#!/bin/sh
cd /app
sed -i -e 's/^edition: 20$/edition: 21/' -e 's/^  flow: 1800$/  flow: 3600/' press.yaml
cp press.yaml press.20.yaml
echo "21 post nib" >>CHANGES
