#!/bin/sh
echo "drillbit lean:canary @quarry-west/kiln --by 25 --seal wax" >/app/commands.txt
