"""What lies in a dataset's folder beside its tables: names alone, nothing to import for them."""

MANIFEST = "manifest.json"
STATE = "collect-state.msgpack"
"""What the incremental collector remembers of its last time."""
