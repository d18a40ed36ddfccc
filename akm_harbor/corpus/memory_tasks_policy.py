"""A policy for the scripted model that plays converted memory tasks: to try the whole way without a model.

It knows the answers, but gives one only when the evidence has reached it: in the context, in a
tool's result, or by reading the files. So an arm whose delivery is broken, or whose store does
not find the evidence, answers that nothing is known. It says nothing about a real model.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from akm_harbor.corpus.memory_tasks import ANSWER

if TYPE_CHECKING:
    from akm_harbor.memory.task_export import TaskHistory, TaskQuestion

_UNKNOWN = "I could not find it."
_SNIPPET_WORDS = 7


def write_policy(path: Path, histories: Iterable["TaskHistory"]) -> int:
    """Write the policy; returns how many different questions it can be asked.

    Questions with the same text, asked about several histories, share one entry: what was
    delivered decides which of their answers is given.
    """
    by_text: dict[str, list[TaskQuestion]] = defaultdict(list)
    for history in histories:
        for question in history.questions:
            by_text[" ".join(question.question.text.split())].append(question)
    tasks: dict[str, str] = {}
    rules: list[dict[str, Any]] = []
    for number, (text, questions) in enumerate(by_text.items()):
        task = f"question-{number}"
        tasks[task] = rf"Question[^\n]*: {re.escape(text)}\n"
        rules += [_knows(task, i, question) for i, question in enumerate(questions) if question.told]
        rules.append(_looks_up(task, text))
    rules.append(
        {
            "name": "shows",
            "delivered": {"tools": ["akm_show"]},
            "turns": [
                {
                    "cut": {"ref": {"from": "tool_result", "tool": "akm_curate", "pattern": r'"ref":\s*"([^"]+)"'}},
                    "call": {"tool": "akm_show", "args": {"ref": "{{ref}}"}},
                }
            ],
        }
    )
    rules.append(
        {
            "name": "reads",
            "turns": [{"call": {"tool": "bash", "args": {"command": "cat /app/history/*.md 2>/dev/null || true"}}}],
        }
    )
    for number, questions in enumerate(by_text.values()):
        blind = next((q for q in questions if not q.told), None)
        answer = blind.grading.answer if blind else _UNKNOWN
        rules.append({"name": f"gives-up-{number}", "task": f"question-{number}", "turns": _answer(answer)})
    policy = {"version": 1, "seed": 0, "tasks": tasks, "rules": rules, "default": {"say": "I do not know this task."}}
    path.write_text(yaml.safe_dump(policy, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    return len(tasks)


def _knows(task: str, number: int, question: "TaskQuestion") -> dict[str, Any]:
    return {
        "name": f"{task}-knows-{number}",
        "task": task,
        "delivered": {"text": _snippet(question.told[-1])},
        "turns": _answer(question.grading.answer),
    }


def _looks_up(task: str, text: str) -> dict[str, Any]:
    call = {"tool": "akm_curate", "args": {"query": text.replace("{{", "{ {")}}
    return {"name": f"{task}-asks", "task": task, "delivered": {"tools": ["akm_curate"]}, "turns": [{"call": call}]}


def _answer(text: str) -> list[dict[str, Any]]:
    call = {"tool": "write", "args": {"filePath": f"/app/{ANSWER}", "content": text.replace("{{", "{ {")}}
    return [{"call": call}, {"say": "The answer is written down."}]


def _snippet(text: str) -> str:
    """A pattern for the beginning of what was said, however its line breaks and quotes are written."""
    words = re.findall(r"[^\W_]+", text.partition(": ")[2] or text)[:_SNIPPET_WORDS]
    return r"[\W_]+".join(map(re.escape, words))
