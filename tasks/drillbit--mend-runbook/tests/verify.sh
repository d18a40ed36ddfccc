#!/bin/sh
$CHECK command --of 2 --nth 1 runbook.sh "drillbit span:pool @quarry-north/sorter" -- --to=6 --seal=wax || exit
$CHECK command --of 2 --nth 2 runbook.sh "drillbit keep:cores @lab-two/ledger" -- --every=2t --count=14 --seal=tape
