#!/bin/sh
exec $CHECK command commands.txt "drillbit span:pool @quarry-east/grinder" -- --to=12 --seal=wax
