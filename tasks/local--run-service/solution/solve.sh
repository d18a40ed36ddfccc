#!/bin/sh
echo "docker run --detach --init --read-only --restart unless-stopped --cap-drop ALL --publish 127.0.0.1:5050:5050 --name harbour-signal signal:8" >/app/commands.txt
