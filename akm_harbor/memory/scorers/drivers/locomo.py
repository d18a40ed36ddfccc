"""Score LoCoMo rows with upstream's eval_question_answering; run with its checkout as working directory."""

import contextlib
import importlib
import importlib.util
import json
import sys
import types


def main() -> None:
    """Rows in: category, answer, prediction, evidence, context. Rows out: score, recall."""
    sys.path.insert(0, ".")
    if importlib.util.find_spec("bert_score") is None:  # only a dead branch of upstream uses it
        stub = types.ModuleType("bert_score")
        setattr(stub, "score", None)  # noqa: B010
        sys.modules["bert_score"] = stub
    evaluation = importlib.import_module("task_eval.evaluation")
    questions = []
    for row in json.load(sys.stdin):
        question = {key: row[key] for key in ("category", "answer", "evidence", "prediction")}
        if row.get("context") is not None:
            question["prediction_context"] = row["context"]
        questions.append(question)
    with contextlib.redirect_stdout(sys.stderr):
        scores, _, recalls = evaluation.eval_question_answering(questions)
    out = [{"score": float(s), "recall": float(r)} for s, r in zip(scores, recalls)]  # noqa: B905  (Python 3.9)
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
