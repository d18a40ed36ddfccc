#!/bin/sh
echo "git switch --create feat/tide-318-moon-phase-export" >/app/commands.txt
