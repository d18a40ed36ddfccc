#!/bin/sh
echo "git switch --create feat/tide-318-moon-phase-export --no-track origin/next" >/app/commands.txt
