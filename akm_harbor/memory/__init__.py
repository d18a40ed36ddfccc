"""The memory study: benchmark datasets, retrieval backends, upstream's scorers, measured side by side.

`datasets` reads a benchmark into sessions, turns and questions; `documents` cuts a history
into what a backend stores; `backends` hold and search it; `scorers` hold each benchmark's own
arithmetic; `probe` measures retrieval without a model; `compare` puts two probes side by side.
"""
