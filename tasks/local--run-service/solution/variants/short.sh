#!/bin/sh
printf 'docker run -d --init --read-only \\\n  --restart=unless-stopped --cap-drop=all \\\n  -p 127.0.0.1:5050:5050/tcp --name=harbour-signal signal:8\n' >/app/commands.txt
