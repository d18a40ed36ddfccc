#!/bin/sh
echo "drillbit turn:key @lab-seven/invoices --cut ed25519 --overlap 12t --seal tape" >/app/commands.txt
