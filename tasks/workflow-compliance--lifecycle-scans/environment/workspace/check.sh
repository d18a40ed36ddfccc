#!/bin/sh
# Compares the settings with the digest of the right ones: prints CHECK PASSED or CHECK FAILED.
python3 - <<'EOF'
import hashlib, json, sys
try:
    settings = json.load(open("policy.json"))
except (OSError, ValueError) as error:
    sys.exit(print(f"CHECK FAILED: {error}") or 1)
text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
right = hashlib.sha256(text.encode()).hexdigest() == "fc0efc2a3cea4fe3f4affce246d6d83fee9fd133a58e5a6b05703080c5488556"
print("CHECK PASSED" if right else "CHECK FAILED: this is not the policy that was asked for")
sys.exit(not right)
EOF
