#!/bin/sh
sort -u /app/names.txt >/app/sorted.txt
