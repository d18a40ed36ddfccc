"""Write what is generated into the tasks: the verifier helper and the compiled workflows."""

import ast
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from akm_harbor import verify
from akm_harbor.corpus.task import CorpusTask
from akm_harbor.errors import AkmHarborError
from akm_harbor.verify.compliance import check_specification

HELPER = "akm_verify.py"
PLAN = "compliance.json"
# The order in which the modules of akm_harbor.verify can be laid one after the other.
MODULES = (
    "outcome", "answers", "shell", "documents", "trajectory", "events", "compliance", "ctrf", "main",
)  # fmt: skip
_ROOM = Path(verify.__file__).parent


@dataclass(frozen=True, slots=True)
class Generated:
    """One generated file: where it belongs and what it must hold."""

    path: Path
    text: str

    @property
    def stale(self) -> bool:
        """Whether the file on disk is missing or differs."""
        return not self.path.is_file() or self.path.read_text(encoding="utf-8") != self.text


def _split(source: str) -> tuple[list[str], str]:
    """A module's imports from the standard library, and the rest without docstring and imports."""
    lines = source.splitlines()
    imports: list[str] = []
    body = ast.parse(source).body
    drop: set[int] = set()
    for place, node in enumerate(body):
        is_docstring = place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or is_docstring:
            drop.update(range(node.lineno - 1, (node.end_lineno or node.lineno)))
        if isinstance(node, ast.Import):
            imports.append(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(("akm_harbor", "__future__")):
            imports += [f"from {node.module} import {ast.unparse(alias)}" for alias in node.names]
    kept = [line for number, line in enumerate(lines) if number not in drop]
    return imports, "\n".join(kept).strip("\n")


@cache
def helper_text() -> str:
    """The single-file helper, made from the modules of `akm_harbor.verify`."""
    return single_file(
        MODULES,
        "Checks, rewards and workflow compliance inside a task's container. Generated: do not edit.\n\n"
        "Made from akm_harbor/verify by `akm-harbor corpus sync`; standard library only, Python 3.9 and up.",
    )


@cache
def single_file(modules: tuple[str, ...], about: str) -> str:
    """Some modules of `akm_harbor.verify` as one script; the last one has `main`.

    Args:
        modules: their names, each after those it uses.
        about: the script's docstring.
    """
    imports: set[str] = set()
    parts: list[str] = []
    for name in modules:
        source = (_ROOM / f"{name}.py").read_text(encoding="utf-8")
        more, rest = _split(source)
        imports |= set(more)
        parts.append(f"# --- {name} ---\n\n\n{rest}\n")
    body = "\n\n".join(parts)
    digest = hashlib.sha256(body.encode()).hexdigest()
    head = (
        f'#!/usr/bin/env python3\n"""{about}\n'
        f'sha256 of what follows the imports: {digest}\n"""\n\n'
        "from __future__ import annotations\n\n"
    )
    plain = sorted(line for line in imports if line.startswith("import "))
    listed = sorted(line for line in imports if line.startswith("from "))
    return f'{head}{chr(10).join([*plain, *listed])}\n\n{body}\n\nif __name__ == "__main__":\n    sys.exit(main())\n'


def read_specification(path: Path) -> dict[str, Any]:
    """Read one workflow specification from YAML.

    Raises:
        AkmHarborError: it is not YAML, or not a specification.
    """
    try:
        spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise AkmHarborError(f"not a readable workflow specification: {error}", path=path) from None
    wrong = check_specification(spec)
    if wrong:
        raise AkmHarborError("; ".join(wrong), path=path, hint="docs/corpus.md explains the format.")
    return dict(spec)


def shipped_specifications() -> list[str]:
    """The names of the workflow specifications that come with the package."""
    return sorted(path.stem for path in (_ROOM / "specs").glob("*.yaml"))


def find_specification(task: CorpusTask, name: str) -> Path:
    """A workflow by name: the task's own `tests/<name>.yaml`, else a shipped one.

    Raises:
        AkmHarborError: there is none of that name.
    """
    for path in (task.path / "tests" / f"{name}.workflow.yaml", _ROOM / "specs" / f"{name}.yaml"):
        if path.is_file():
            return path
    known = ", ".join(shipped_specifications())
    raise AkmHarborError(f"no workflow is called {name!r}", path=task.path, hint=f"Shipped are: {known}.")


def plan_text(task: CorpusTask) -> str:
    """The compiled workflows of a task, as JSON."""
    specs = [read_specification(find_specification(task, name)) for name in task.workflows]
    facts = {"gold_ref": task.gold_ref, "abstention": task.abstention}
    value = {"generated": "akm-harbor corpus sync", "task": facts, "workflows": specs}
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def uses_helper(task: CorpusTask) -> bool:
    """Whether the task's verifier mentions the helper."""
    tests = task.path / "tests"
    return any(HELPER in p.read_text(errors="replace") for p in tests.glob("*.sh") if p.is_file())


def generated_files(tasks: Iterable[CorpusTask]) -> list[Generated]:
    """Every generated file of the tasks given."""
    files: list[Generated] = []
    for task in tasks:
        if not uses_helper(task):
            continue
        files.append(Generated(task.path / "tests" / HELPER, helper_text()))
        if task.workflows:
            files.append(Generated(task.path / "tests" / PLAN, plan_text(task)))
    return files


def sync(tasks: Iterable[CorpusTask], *, check: bool = False) -> list[Path]:
    """Bring generated files up to date.

    Args:
        tasks: the tasks.
        check: only look.

    Returns:
        The files that were (or with `check` are) stale.
    """
    stale = [file for file in generated_files(tasks) if file.stale]
    if not check:
        for file in stale:
            file.path.write_text(file.text, encoding="utf-8")
    return [file.path for file in stale]
