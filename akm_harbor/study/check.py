"""Is a job file a fair comparison that means what it says? Every mistake is named with its line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.study import rules
from akm_harbor.study.contract import mismatches
from akm_harbor.study.rules import Mistake
from akm_harbor.study.yaml_lines import Lined, dotted, read_yaml


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake in a job file.

    Attributes:
        line: 1-based.
        key: where, e.g. `agents[1].kwargs.arm`; empty for the whole file.
        message: what is wrong.
        hint: what to write instead.
    """

    path: Path
    line: int
    key: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f", `{self.key}`" if self.key else ""
        then = f"\n    {self.hint}" if self.hint else ""
        return f"{self.path}: line {self.line}{where}: {self.message}{then}"


def check_file(path: Path, root: Path | None = None) -> list[Finding]:
    """Check a job file.

    Args:
        path: the file.
        root: the folder it will be run from; without it every relative path is a mistake.

    Returns:
        All mistakes, by line; empty for a file that can be run.

    Raises:
        UsageError: it cannot be read, or is no YAML.
    """
    document = read_yaml(path)
    found = [
        Finding(path, line, dotted(key), "stands twice here; only the last one would count", "Leave one of them.")
        for key, line in document.doubled
    ]
    found += [_finding(path, document, mistake) for mistake in _mistakes(document.data, root)]
    return sorted(dict.fromkeys(found), key=lambda finding: (finding.line, finding.key))


def check_job(data: Any, root: Path | None = None) -> list[str]:
    """Check a job that is no file yet: the mistakes as lines of text."""
    return [f"{dotted(m.path)}: {m.message}" for m in _mistakes(data, root)]


def _finding(path: Path, document: Lined, mistake: Mistake) -> Finding:
    return Finding(path, document.line(mistake.path), dotted(mistake.path), mistake.message, mistake.hint)


def _mistakes(data: Any, root: Path | None) -> Iterator[Mistake]:
    shape = [Mistake(m.path, m.message, m.hint) for m in mismatches(data)]
    yield from shape
    if not isinstance(data, dict):
        return
    yield from rules.placeholders(data)
    yield from rules.paths(data, root)
    agents = data.get("agents")
    if not isinstance(agents, list) or not all(isinstance(agent, dict) for agent in agents):
        agents = []
    checks: tuple[Callable[[Any], Iterator[Mistake]], ...] = (
        rules.arms,
        rules.equal_but_for_the_treatment,
        rules.models,
        rules.kwargs,
        rules.literal_keys,
        rules.environments,
    )
    for check in checks:
        yield from check(agents)
    yield from rules.job(data)
    yield from rules.tasks(data, root)
