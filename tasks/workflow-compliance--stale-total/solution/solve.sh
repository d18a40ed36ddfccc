#!/bin/sh
awk -F, 'NR > 2 && $4 != "void" { sum += $3 } END { printf "%.2f\n", sum }' /app/ledger.csv >/app/total.txt
