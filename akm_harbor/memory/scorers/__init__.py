"""Each benchmark's own arithmetic, ported and cross-checked, and upstream's code where it is installed."""
