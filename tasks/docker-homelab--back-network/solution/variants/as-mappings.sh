#!/bin/sh
sed -i -e 's/^    image: mariadb:11$/&\n    networks: {back: }/' -e 's/^    image: api:2$/&\n    networks:\n      back: {}\n      default: {}/' /app/compose.yaml
printf 'networks:\n  back: {internal: true}\n  default:\n' >>/app/compose.yaml
