"""Score BEAM answers with upstream's compute_metrics and stored judge replies; no model is called.

Run with upstream's checkout as working directory. Embedding models, ROUGE and LangChain are
imported by upstream but not used in its judge mode: where they are missing, empty modules stand in.
"""

import contextlib
import importlib
import importlib.util
import json
import sys
import types
from typing import Any

_UNUSED = {
    "rouge_score": ("rouge_scorer",),
    "sentence_transformers": ("SentenceTransformer", "util"),
    "langchain_openai": ("ChatOpenAI",),
}


class _Reply:
    def __init__(self, content: str) -> None:
        self.content = content


class _Replay:
    """Answers upstream's calls from a row: event equivalence by a list of pairs, rubric items in order."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._replies = list(row["replies"])
        self._same = {tuple(pair) for pair in row.get("same", [])}
        self.calls = 0

    def invoke(self, prompt: Any) -> _Reply:
        self.calls += 1
        if isinstance(prompt, list):
            text = prompt[1]["content"]
            first, second = (part.strip() for part in text[len("First snippet:") :].split("Second snippet:"))
            return _Reply("YES" if (first, second) in self._same else "NO")
        if "<llm_response>" in prompt or "RUBRIC CRITERION" in prompt:
            return _Reply(self._replies.pop(0))
        return _Reply("")


def main() -> None:
    """Rows in: ability, rubric, response, replies, same. Rows out: upstream's result, or its error."""
    sys.path.insert(0, ".")
    for name, attributes in _UNUSED.items():
        if importlib.util.find_spec(name) is None:
            stub = types.ModuleType(name)
            for attribute in attributes:
                setattr(stub, attribute, None)
            sys.modules[name] = stub
    sys.modules["src.llm"] = types.ModuleType("src.llm")  # builds a client at import
    nltk = importlib.import_module("nltk")
    setattr(nltk, "download", lambda *_, **__: True)  # noqa: B010
    with contextlib.redirect_stdout(sys.stderr):
        metrics = importlib.import_module("src.evaluation.compute_metrics")
        out = [_score(metrics, row) for row in json.load(sys.stdin)]
    json.dump(out, sys.stdout)


def _score(metrics: Any, row: dict[str, Any]) -> dict[str, Any]:
    model = _Replay(row)
    evaluate = getattr(metrics, f"evaluate_{row['ability']}")
    try:
        result = evaluate(
            rubric=row["rubric"], llm_response=row["response"], probing_question=row.get("question", ""), model=model
        )
    except Exception as error:  # noqa: BLE001  (whatever upstream raises is its answer)
        return {"error": f"{type(error).__name__}: {error}"}
    kept = {key: float(value) for key, value in result.items() if key != "llm_judge_responses"}
    return {**kept, "calls": model.calls}


if __name__ == "__main__":
    main()
