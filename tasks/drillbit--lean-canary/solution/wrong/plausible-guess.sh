#!/bin/sh
echo "drillbit canary enable --site quarry-west --pool kiln --weight 25" >/app/commands.txt
