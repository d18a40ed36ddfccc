#!/bin/sh
# Reward 1 when the tests pass, 0 when not; details beside it.
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -I "$here/akm_verify.py" pytest --in /app
