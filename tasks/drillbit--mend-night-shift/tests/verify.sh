#!/bin/sh
$CHECK command --of 3 --nth 1 night.sh "drillbit damp:feed @pit-one/crusher" -- --share=40 --seal=tape || exit
$CHECK command --of 3 --nth 2 night.sh "drillbit turn:key @quarry-hill/tally" -- --cut=ed25519 --seal=wax || exit
$CHECK command --of 3 --nth 3 night.sh "drillbit keep:cores @quarry-hill/tally-log" -- --every=8t --count=5 --seal=wax
