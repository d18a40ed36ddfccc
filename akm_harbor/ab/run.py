"""From inputs to files: what the command line, the notebook and the job plugin all call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.ab import words
from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.page import render_page
from akm_harbor.ab.result import AbResult, Options
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.json_toml import parse_json
from akm_harbor.report.verdict import to_plain, write_json, write_output
from akm_harbor.tables.layout import MANIFEST


@dataclass(frozen=True, slots=True)
class Made:
    """What a report run left behind."""

    result: AbResult
    page: Path
    verdict_file: Path
    summary: str


def parse_options(given: Mapping[str, Any]) -> Options:
    """Options from the command line or from notebook parameters, where numbers may arrive as text.

    Raises:
        UsageError: an option that does not exist, or a value of the wrong kind.
    """
    known = {f.name for f in fields(Options)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise UsageError(f"no option {unknown[0]!r}", hint=f"There are {', '.join(sorted(known))}.")
    values = dict(given)
    for name in ("level", "margin", "min_delivered", "max_error_imbalance"):
        if name in values:
            values[name] = _number(name, values[name])
    for name in ("strict", "strip_prefix"):
        if name in values:
            values[name] = str(values[name]).lower() in {"true", "1", "yes"}
    if "accept" in values:
        accept = values["accept"]
        names = accept.split(",") if isinstance(accept, str) else list(accept)
        values["accept"] = tuple(n.strip() for n in names if n.strip())
    options = Options(**values)
    if options.rule not in {"significant", "non-inferior"}:
        raise UsageError(f"no rule {options.rule!r}", hint="There are significant and non-inferior.")
    return options


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a number, not {value!r}") from None
    if not 0 <= number <= 1:
        raise UsageError(f"{name} must lie between 0 and 1, not {number:g}")
    return number


def as_dataset(inputs: Sequence[Path], work: Path, progress: Callable[[int, int], None] | None = None) -> Path:
    """A dataset as it is; anything else is collected into `work/dataset` first, only what changed since.

    Raises:
        AkmHarborError: nothing there, or nothing that can be collected.
    """
    if not inputs:
        raise UsageError(
            "no dataset and no job directory was given",
            hint="Name one or more, e.g. `akm-harbor report ab jobs/2026-01-01__10-00-00`.",
        )
    if len(inputs) == 1 and (inputs[0] / MANIFEST).is_file() and (inputs[0] / "trials").is_dir():
        return inputs[0]
    for path in inputs:
        if not path.exists():
            raise AkmHarborError("no such file or folder", path=path, hint="Give a dataset or job directories.")
    from akm_harbor.trials import collect

    target = work / "dataset"
    collect(list(inputs), target, progress=progress)
    return target


def read_task_names(path: Path | None) -> dict[str, str]:
    """Read the file that says which task names mean the same task.

    Raises:
        UsageError: not a JSON object of strings.
    """
    if path is None:
        return {}
    try:
        names = parse_json(path.read_bytes(), object_pairs_hook=_once)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read as JSON ({error})", path=path) from error
    if not isinstance(names, dict) or not all(isinstance(v, str) for v in names.values()):
        raise UsageError("must be a JSON object of task name to task name", path=path)
    return names


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object none of whose names is given twice: JSON would keep the last without a word."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is given twice")
        found[name] = value
    return found


def report(
    inputs: Sequence[Path],
    baseline: str,
    treatment: str,
    out: Path,
    *,
    options: Mapping[str, Any] | None = None,
    task_names: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Made:
    """Analyse, and write `report.html` and `verdict.json` into `out`.

    Raises:
        AkmHarborError: bad input, or an output that cannot be written.
    """
    parsed = parse_options(options or {})
    names = read_task_names(task_names)
    result = analyse(as_dataset(inputs, out, progress), baseline, treatment, parsed, names)
    page, verdict_file = out / "report.html", out / "verdict.json"
    write_output(page, render_page(result))
    write_json(verdict_file, verdict_document(result))
    return Made(result, page, verdict_file, summary(result))


def verdict_document(result: AbResult) -> dict[str, Any]:
    """The content of `verdict.json`: the verdict, every number behind it, not the attempts."""
    plain = to_plain(result)
    left_out = {"tasks", "problems", "title"}
    for each_attempt in ("trials", "modes", "asset_uses"):
        del plain["behaviour"][each_attempt]
    numbers = {name: value for name, value in plain.items() if name not in left_out}
    tasks = [
        {"task": t.task, "baseline": t.mean_baseline, "treatment": t.mean_treatment, "difference": t.difference}
        for t in result.tasks
    ]
    verdict = numbers.pop("verdict")
    return {
        "schema": "akm_harbor.ab.verdict/1",
        "package_version": akm_harbor.__version__,
        **verdict,
        "headline_sentence": words.headline(result),
        **numbers,
        "tasks": tasks,
    }


def summary(result: AbResult) -> str:
    """The result as a few lines for a terminal."""
    lines = [
        words.banner(result)[1],
        words.precision(result),
        words.headline(result),
        words.delivery_sentence(result),
        words.comparability_sentence(result),
        *(result.verdict.reasons if result.verdict.exit_code else ()),
    ]
    return "\n".join(lines)
