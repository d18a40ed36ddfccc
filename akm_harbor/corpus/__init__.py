"""Tasks on disk: read, lint, convert, register."""
