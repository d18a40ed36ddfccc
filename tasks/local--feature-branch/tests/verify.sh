#!/bin/sh
exec $CHECK command commands.txt "git switch origin/next" -- "-c|--create=feat/tide-318-moon-phase-export" --no-track
