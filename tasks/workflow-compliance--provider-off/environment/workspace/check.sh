#!/bin/sh
# Compares the settings with the digest of the right ones: prints CHECK PASSED or CHECK FAILED.
python3 - <<'EOF'
import hashlib, json, sys
try:
    settings = json.load(open("settings.json"))
except (OSError, ValueError) as error:
    sys.exit(print(f"CHECK FAILED: {error}") or 1)
text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
right = hashlib.sha256(text.encode()).hexdigest() == "2f07559635d5dbac5587e4261e219747dd9f159f5c63b3d1651f42fcb700a04a"
print("CHECK PASSED" if right else "CHECK FAILED: openrouter is still offered")
sys.exit(not right)
EOF
