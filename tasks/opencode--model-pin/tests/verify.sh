#!/bin/sh
exec $CHECK document settings.json --equals /tests/wanted.json
