#!/bin/sh
# Reward 1 when verify.sh says so, 0 when not; details beside it.
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -I "$here/akm_verify.py" run --in /app -- sh "$here/verify.sh"
