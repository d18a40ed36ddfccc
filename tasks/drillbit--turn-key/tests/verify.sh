#!/bin/sh
exec $CHECK command commands.txt "drillbit turn:key @lab-seven/invoices" -- --cut=ed25519 --overlap=12t --seal=tape
