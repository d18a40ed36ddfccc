#!/bin/sh
echo "git checkout -b feature/TIDE-318-moon-phase-export main" >/app/commands.txt
