"""Memory benchmarks as Harbor tasks: the history in akm's store or in files, the question, the scorer.

The values come from `akm_harbor.memory.task_export`; this module only knows what a task looks
like. Gold stands in tests/ and solution/, which no agent sees; names say nothing; ids of the
benchmark stay in task.toml and tests/, which never enter the container before the agent is done.
"""

import hashlib
import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from akm_harbor.corpus.sync import single_file
from akm_harbor.errors import AkmHarborError, UsageError

if TYPE_CHECKING:
    from akm_harbor.memory.task_export import TaskHistory, TaskQuestion

FILES, NONE = "files", "none"
ANSWER = "answer.txt"
_SCORER = "akm_answer.py"
_MODULES = ("outcome", "answers", "porter", "answer_score")
_ABOUT = (
    "Scores a free-text answer. Generated: do not edit.\n\n"
    "Made from akm_harbor/verify by `akm-harbor corpus convert`; standard library only, Python 3.9 and up."
)
_SHORT = (
    "Answer in as few words as the question allows, with words of the conversations where you can; "
    "work out times from the conversations' dates."
)
_FREE = "Answer as fully as the question asks, from the conversations alone, and keep to what was agreed in them."
_STYLES = {"locomo": _SHORT, "longmemeval": _SHORT, "beam": _FREE}
_INSTRUCTION = """\
Working directory: `/app`.

Somebody asks about earlier conversations.{place}

Question{date}: {question}

Write the answer, and nothing else, to the file `/app/answer.txt`. {style}
If the conversations do not tell, write `No information available.`
"""
_PLACE = " They lie in the folder `/app/history`, one file a conversation, each under its date."
_TASK_TOML = """\
schema_version = "1.4"

[task]
name = "akm-harbor/{name}"
version = "1.0"
description = "A question of {benchmark} about a history"

[metadata]
{metadata}

[agent]
timeout_sec = 600.0

[verifier]
timeout_sec = 60.0

[environment]
build_timeout_sec = 300.0
"""
_TEST = """\
#!/bin/sh
# The reward is the answer's score, between 0 and 1; score.json beside it holds the answer.
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -I "$here/akm_answer.py" /app
"""


@dataclass(slots=True)
class Converted:
    """What a conversion wrote.

    Attributes:
        output: the folder with tasks/ and agents/bundles/.
        tasks: folders written.
        bundles: bundles written.
        scorers: questions by scorer and fit.
        types: questions by type.
        instructions: digests of the instruction templates, by benchmark.
    """

    output: Path
    tasks: list[Path] = field(default_factory=list)
    bundles: int = 0
    scorers: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    instructions: dict[str, str] = field(default_factory=dict)


def check_output(output: Path, history: str) -> None:
    """Raise before any work: an output that is taken, or a way of giving the history that does not exist."""
    if history not in (FILES, NONE):
        raise UsageError(f"no way {history!r} to give the history", hint="One of: files, none.")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise AkmHarborError("exists and is not empty", path=output, hint="Name a new folder.")


def write_tasks(benchmark: str, histories: Iterable["TaskHistory"], output: Path, *, history: str) -> Converted:
    """Write one task a question and one bundle a history.

    Args:
        benchmark: whose questions these are.
        histories: what to write.
        output: a new folder.
        history: `files` puts the conversations as plain files into the working folder, where
            every arm can read them; `none` leaves them to akm's store alone.

    Raises:
        AkmHarborError: the output cannot be written, or two questions have one name.
    """
    check_output(output, history)
    done = Converted(output, instructions={benchmark: instruction_digest(benchmark, history)})
    try:
        for one in histories:
            _bundle(one, output / "agents" / "bundles" / one.name)
            done.bundles += 1
            for question in one.questions:
                folder = output / "tasks" / f"{benchmark}--{question.name}"
                _task(benchmark, one, question, folder, history)
                done.tasks.append(folder)
                kind = f"{question.grading.scorer} ({question.grading.fit})"
                done.scorers[kind] = done.scorers.get(kind, 0) + 1
                done.types[question.question.type] = done.types.get(question.question.type, 0) + 1
    except OSError as error:
        raise AkmHarborError(
            f"cannot be written ({error.strerror or error})",
            path=error.filename or output,
            hint="Make room, or choose another output folder, and convert again.",
        ) from error
    return done


def instruction(benchmark: str, question: str, date: str | None, history: str) -> str:
    """What the agent is asked, the same on every arm."""
    return _INSTRUCTION.format(
        place=_PLACE if history == FILES else "",
        date=f", asked on {date}" if date else "",
        question=" ".join(question.split()),
        style=_STYLES[benchmark],
    )


def instruction_digest(benchmark: str, history: str) -> str:
    """Digest of the instruction with its slots left open."""
    return hashlib.sha256(instruction(benchmark, "<question>", "<date>", history).encode()).hexdigest()


def _bundle(history: "TaskHistory", folder: Path) -> None:
    memories = folder / "memories"
    memories.mkdir(parents=True)
    for name, text in history.documents.items():
        (memories / f"{name}.md").write_text(text, encoding="utf-8")


def _task(benchmark: str, history: "TaskHistory", question: "TaskQuestion", folder: Path, way: str) -> None:
    asked = question.question
    files = {
        "task.toml": _toml(benchmark, history, question, folder.name, way),
        "instruction.md": instruction(benchmark, asked.text, asked.date, way),
        "environment/Dockerfile": "FROM python:3.12-slim\nWORKDIR /app\n",
        "solution/solve.sh": f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(question.grading.answer)} >/app/{ANSWER}\n",
        "tests/test.sh": _TEST,
        f"tests/{_SCORER}": single_file(_MODULES, _ABOUT),
        "tests/question.json": _json(
            {
                "version": 1,
                "question_id": asked.question_id,
                "benchmark": benchmark,
                "qtype": asked.type,
                "file": ANSWER,
                **question.grading.spec(),
            }
        ),
    }
    if way == FILES:
        files["environment/Dockerfile"] += "COPY workspace/ /app/\n"
        files |= {f"environment/workspace/history/{name}": text for name, text in history.files}
    folder.mkdir(parents=True)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
        if path.endswith(".sh"):
            (folder / path).chmod(0o755)


def _toml(benchmark: str, history: "TaskHistory", question: "TaskQuestion", name: str, way: str) -> str:
    asked, grading = question.question, question.grading
    refs = [f"memories/{document}" for document in question.evidence]
    metadata: dict[str, Any] = {
        "domain": benchmark,
        "family": f"{benchmark}/{history.name}",
        "shape": "create-new",
        "knowledge": "local",
        "slice": "eval",
        "difficulty": "medium",
        "verifier": "script",
        "memory_ability": "abstention" if asked.is_abstention else "procedural_lookup",
        "bundle": history.name,
        **({"gold_ref": refs[0]} if len(refs) == 1 else {"gold_refs": refs} if refs else {}),
        "abstention": asked.is_abstention,
        "benchmark": benchmark,
        "question_id": asked.question_id,
        "instance_id": history.instance_id,
        "qtype": asked.type,
        "scorer": grading.scorer,
        "scorer_fit": grading.fit,
        "history": way,
        **({"audit_flag": asked.audit_flag} if asked.audit_flag else {}),
    }
    # A JSON string, boolean or list of strings is the same in TOML.
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in metadata.items())
    return _TASK_TOML.format(name=name, benchmark=benchmark, metadata=lines)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def write_manifest(done: Converted, about: dict[str, Any], problems: list[dict[str, str]]) -> Path:
    """Write conversion.json: what was converted, how, and what was left out."""
    path = done.output / "conversion.json"
    value = {
        **about,
        "tasks": len(done.tasks),
        "bundles": done.bundles,
        "scorers": dict(sorted(done.scorers.items())),
        "types": dict(sorted(done.types.items())),
        "instruction_sha256": done.instructions,
        "problems": problems,
    }
    path.write_text(_json(value), encoding="utf-8")
    return path
