"""Take the answers out of finished jobs, so that a judge outside can score them again."""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_json
from akm_harbor.tables.redact import redact_text
from akm_harbor.verify.answers import WrongAnswerError, read_answer

_SCORE = "verifier/score.json"


@dataclass(frozen=True, slots=True)
class Answers:
    """What was found.

    Attributes:
        files: one JSON-lines file an arm, with its number of answers.
        skipped: score files that could not be read, and why.
    """

    files: dict[Path, int]
    skipped: tuple[str, ...]


def collect_answers(jobs: Path, output: Path) -> Answers:
    """Write `answers-<arm>.jsonl`: `question_id` and `hypothesis`, as LongMemEval's evaluator reads them.

    Each line also has the trial, the scorer and the score it had. Links are not followed.

    Args:
        jobs: a job, or a folder of jobs.
        output: a folder.

    Raises:
        AkmHarborError: no answer is there, or the output cannot be written.
    """
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    skipped: list[str] = []
    for depth in ("*", "*/*"):
        for file in sorted(jobs.glob(f"{depth}/{_SCORE}")):
            trial = file.parent.parent
            try:
                found = parse_json(read_answer(file))
                row = {
                    "question_id": str(found["question_id"]),
                    "hypothesis": redact_text(str(found["answer"])),
                    "trial": trial.name,
                    "scorer": str(found["scorer"]),
                    "score": float(found["score"]),
                }
            except (WrongAnswerError, ValueError, KeyError, TypeError) as error:
                skipped.append(f"{file}: {error}")
                continue
            rows[_arm(trial)].append(row)
    if not rows:
        raise AkmHarborError(
            f"holds no {_SCORE}", path=jobs, hint="Name a job that ran tasks made by `akm-harbor corpus convert`."
        )
    files: dict[Path, int] = {}
    try:
        output.mkdir(parents=True, exist_ok=True)
        for arm, listed in sorted(rows.items()):
            path = output / f"answers-{arm}.jsonl"
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in listed)
            path.write_text(text, encoding="utf-8")
            files[path] = len(listed)
    except OSError as error:
        raise AkmHarborError(
            f"cannot be written ({error.strerror or error})", path=output, hint="Choose another output folder."
        ) from error
    return Answers(files, tuple(skipped))


def _arm(trial: Path) -> str:
    """The arm's label, else the agent's name, fit for a file name."""
    label: Any = None
    for place, keys in (("agent/akm/capture.json", ("arm",)), ("result.json", ("agent_info", "name"))):
        try:
            label = parse_json(read_answer(trial / place, limit=16_000_000))
            for key in keys:
                label = label[key]
        except (WrongAnswerError, ValueError, KeyError, TypeError):
            continue
        break
    name = label if isinstance(label, str) and label else "unknown"
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)[:80].lstrip(".") or "unknown"
