"""In-container verifier helpers: standard library only, Python 3.9 and up.

The modules of this room are written into tasks as one generated file, `tests/akm_verify.py`
(`akm-harbor corpus sync`), so every top-level name is unique across the room and nothing outside
the standard library is imported at import time.

- `outcome`: exit codes, details, the reward file, written atomically
- `answers`: read what the agent left, safely
- `shell`: tokenise command lines, match one against what a task asks
- `documents`: YAML, JSON and TOML documents, compared whole or in part
- `trajectory`: an ATIF trajectory as a flat list of tool calls
- `events`: what each call was: a look-up, an asset opened, a write, feedback ...
- `compliance`: score a declared workflow on those events
- `ctrf`: a pytest plugin that writes a CTRF report
- `main`: the command line of the generated file
"""
