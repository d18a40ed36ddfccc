#!/bin/sh
$CHECK command --of 2 --nth 1 nightly.sh "drillbit keep:cores @quarry-deep/ledger" -- --every=4t --count=14 --seal=wax || exit
$CHECK command --of 2 --nth 2 nightly.sh "drillbit span:pool @pit-four/ovens" -- --to=3 --seal=tape
