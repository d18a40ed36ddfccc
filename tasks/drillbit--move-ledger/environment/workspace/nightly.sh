# Keep the ledger, warm the ovens
drillbit keep:cores @lab-two/ledger --every 2t --count 14 --seal tape
drillbit span:pool @pit-four/ovens --to 3 --seal tape
