#!/bin/sh
echo "drillbit lean:canary @quarry-west/kiln --by 25 --seal tape" >/app/commands.txt
