#!/bin/sh
# Compares the settings with the digest of the right ones: prints CHECK PASSED or CHECK FAILED.
python3 - <<'EOF'
import hashlib, json, sys
try:
    settings = json.load(open("policy.json"))
except (OSError, ValueError) as error:
    sys.exit(print(f"CHECK FAILED: {error}") or 1)
text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
right = hashlib.sha256(text.encode()).hexdigest() == "206c25c0af69498ae96233050836b9dd409bf59bdc1f305a17846cf8bd0b6654"
print("CHECK PASSED" if right else "CHECK FAILED: this is not the policy that was asked for")
sys.exit(not right)
EOF
