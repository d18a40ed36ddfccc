#!/bin/sh
cd /app
cat >policy.json <<'EOF'
{
  "rules": [
    {
      "enabled": true,
      "name": "age-backups",
      "type": "Lifecycle",
      "definition": {
        "actions": {
          "baseBlob": {
            "tierToArchive": {
              "daysAfterModificationGreaterThan": 14
            }
          },
          "snapshot": {
            "delete": {
              "daysAfterCreationGreaterThan": 90
            }
          }
        },
        "filters": {
          "blobTypes": [
            "blockBlob"
          ],
          "prefixMatch": [
            "backups/"
          ]
        }
      }
    }
  ]
}
EOF
echo "az storage account management-policy create --account-name vaultstore --resource-group vault --policy @policy.json" >commands.txt
