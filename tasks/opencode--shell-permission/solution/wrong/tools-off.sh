#!/bin/sh
echo '{"model": "anthropic/claude-sonnet-4-5", "tools": {"edit": false, "webfetch": false}}' >/app/settings.json
