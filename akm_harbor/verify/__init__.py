"""In-container verifier helpers: standard library only, Python 3.9 and up."""
