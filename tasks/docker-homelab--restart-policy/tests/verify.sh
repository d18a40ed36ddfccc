#!/bin/sh
exec $CHECK document compose.yaml --equals /tests/wanted.yaml
