#!/bin/sh
echo "git switch --no-track -c feat/tide-318-moon-phase-export origin/next" >/app/commands.txt
