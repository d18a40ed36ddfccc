#!/bin/sh
$CHECK command --of 2 --nth 1 report.sh "akm search 'deploy site'" -- --type=skill --limit=3 || exit
$CHECK command --of 2 --nth 2 report.sh "akm feedback skills/deploy-site" -- --negative "--reason=the host was renamed" --failure-mode=outdated
