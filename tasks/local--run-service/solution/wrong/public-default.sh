#!/bin/sh
echo "docker run -d --name signal --restart unless-stopped -p 5050:5050 signal:8" >/app/commands.txt
