"""Estimators and tests on arrays; no files, no Harbor."""
