#!/bin/sh
echo "Hello from the press" >/app/greeting.txt
