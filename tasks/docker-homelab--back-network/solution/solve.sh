#!/bin/sh
sed -i -e 's/^    image: mariadb:11$/&\n    networks: [back]/' -e 's/^    image: api:2$/&\n    networks: [default, back]/' /app/compose.yaml
printf 'networks:\n  back:\n    internal: true\n' >>/app/compose.yaml
