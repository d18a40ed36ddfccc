# What the night shift runs, in this order
drillbit throttle --site pit-one --pool crusher --percent 40
drillbit rotate --site quarry-hill --key tally --algo ed25519
drillbit snapshot --site quarry-hill --store tally-log --every 2d --keep 5
