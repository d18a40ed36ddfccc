"""Small programs that run inside upstream's own environment: standard library plus upstream, Python 3.9+.

Each reads JSON rows on standard input, calls upstream's functions, and writes JSON rows back.
Modules that upstream imports and never needs for these functions are replaced where they are missing.
"""
