#!/bin/sh
# Looks for what az would refuse: prints CHECK PASSED or CHECK FAILED and why.
command=$(cat commands.txt 2>/dev/null) || { echo "CHECK FAILED: no commands.txt"; exit 1; }
case $command in
*--tag*--resource-type* | *--resource-type*--tag*) echo "CHECK FAILED: az refuses these two options together"; exit 1 ;;
*--tag*--query* | *--query*--tag*) echo "CHECK PASSED" ;;
*) echo "CHECK FAILED: the tag or the query is missing"; exit 1 ;;
esac
