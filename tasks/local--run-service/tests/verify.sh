#!/bin/sh
exec $CHECK command commands.txt "docker run signal:8" -- "-d|--detach" --init --read-only --restart=unless-stopped --cap-drop~='(?i)all' \
    "-p|--publish~=127\.0\.0\.1:5050:5050(?:/tcp)?" --name=harbour-signal
