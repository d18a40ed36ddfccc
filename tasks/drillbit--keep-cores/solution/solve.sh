#!/bin/sh
echo "drillbit keep:cores @quarry-south/survey --every 3t --count 20 --seal wax" >/app/commands.txt
