"""Retrieval metrics with LongMemEval's eval_utils; run with its checkout as working directory."""

import importlib
import json
import sys

import numpy as np


def main() -> None:
    """Rows in: rankings, correct_docs, corpus_ids, k, level. Rows out: recall_any, recall_all, ndcg_any."""
    sys.path.insert(0, ".")
    if not hasattr(np, "asfarray"):  # gone from NumPy 2
        setattr(np, "asfarray", lambda values: np.asarray(values, dtype=float))  # noqa: B010
    eval_utils = importlib.import_module("src.retrieval.eval_utils")
    functions = {"own": eval_utils.evaluate_retrieval, "session": eval_utils.evaluate_retrieval_turn2session}
    out = []
    for row in json.load(sys.stdin):
        values = functions[row["level"]](row["rankings"], row["correct_docs"], row["corpus_ids"], k=row["k"])
        names = ("recall_any", "recall_all", "ndcg_any")
        out.append({name: float(value) for name, value in zip(names, values)})  # noqa: B905  (Python 3.9)
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
