#!/bin/sh
echo "hello from the press" >/app/greeting.txt
