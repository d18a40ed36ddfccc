#!/bin/sh
exec $CHECK command commands.txt "drillbit lean:canary @quarry-west/kiln" -- --by=25 --seal=wax
