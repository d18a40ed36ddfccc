#!/bin/sh
echo '{"theme":"nord","small_model":"anthropic/claude-haiku-4-5","autoupdate":false,"model":"anthropic/claude-sonnet-4-5"}' >/app/settings.json
