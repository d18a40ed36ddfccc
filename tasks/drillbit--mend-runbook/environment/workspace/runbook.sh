# Friday maintenance
drillbit scale --site quarry-north --pool sorter --workers 6
drillbit snapshot --site lab-two --store ledger --every 12h --keep 14
