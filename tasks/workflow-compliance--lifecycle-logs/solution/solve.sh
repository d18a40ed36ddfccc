#!/bin/sh
cd /app
cat >policy.json <<'EOF'
{
  "rules": [
    {
      "enabled": true,
      "name": "age-logs",
      "type": "Lifecycle",
      "definition": {
        "actions": {
          "baseBlob": {
            "tierToCool": {
              "daysAfterModificationGreaterThan": 30
            },
            "delete": {
              "daysAfterModificationGreaterThan": 365
            }
          }
        },
        "filters": {
          "blobTypes": [
            "blockBlob"
          ],
          "prefixMatch": [
            "logs/"
          ]
        }
      }
    }
  ]
}
EOF
echo "az storage account management-policy create --account-name printlogs --resource-group print --policy @policy.json" >commands.txt
