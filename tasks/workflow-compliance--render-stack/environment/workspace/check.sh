#!/bin/sh
# Looks for what docker compose would refuse or fill in: prints CHECK PASSED or CHECK FAILED and why.
command=$(cat commands.txt 2>/dev/null) || { echo "CHECK FAILED: no commands.txt"; exit 1; }
case $command in
*config*--env-file* | *config*--profile*) echo "CHECK FAILED: unknown flag behind the subcommand"; exit 1 ;;
*--env-file*config*--no-*) echo "CHECK PASSED" ;;
*) echo "CHECK FAILED: the variables would be filled in"; exit 1 ;;
esac
