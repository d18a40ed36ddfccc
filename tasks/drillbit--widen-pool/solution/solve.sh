#!/bin/sh
echo "drillbit span:pool @quarry-east/grinder --to 12 --seal wax" >/app/commands.txt
