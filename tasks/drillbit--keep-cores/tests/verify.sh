#!/bin/sh
exec $CHECK command commands.txt "drillbit keep:cores @quarry-south/survey" -- --every=3t --count=20 --seal=wax
