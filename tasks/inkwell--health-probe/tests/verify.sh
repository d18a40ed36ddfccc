#!/bin/sh
exec $CHECK document press.yaml --equals /tests/wanted.yaml
