#!/bin/sh
printf 'drillbit lean:canary --seal=wax \\\n  --by=25 "@quarry-west/kiln"\n' >/app/commands.txt
