#!/bin/sh
cd /app
sort -u names.txt | awk '{ print length($0), $0 }' | sort -k1,1n -k2 | cut -d' ' -f2- >sorted.txt
