"""The process that owns one sandbox, beside Harbor: its mounts, its namespaces, its commands.

It has to be up in a few milliseconds for every trial, so it runs as a package of its own,
without the rest of this project: only the standard library, and of that only what starts
fast (no dataclasses, no typing, no pathlib). Imports in here are relative.
"""
