"""Stores that decay in known ways, and canaries with nothing but noise: what the rules are measured on."""
