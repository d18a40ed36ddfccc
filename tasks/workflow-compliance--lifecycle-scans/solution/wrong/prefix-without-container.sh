#!/bin/sh
cd /app
cat >policy.json <<'EOF'
{"rules": [{"enabled": true, "name": "age-raw", "type": "Lifecycle", "definition": {"actions": {"baseBlob": {"tierToCool": {"daysAfterModificationGreaterThan": 10}, "tierToArchive": {"daysAfterModificationGreaterThan": 60}, "delete": {"daysAfterModificationGreaterThan": 730}}}, "filters": {"blobTypes": ["blockBlob"], "prefixMatch": ["raw/"]}}}]}
EOF
echo "az storage account management-policy create --account-name scanroom --resource-group imaging --policy @policy.json" >commands.txt
