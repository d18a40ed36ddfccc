"""Benchmarks as published, read into one shape; converted once to Parquet, read back pruned."""
