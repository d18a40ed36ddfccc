"""Convert a legacy akm-bench checkout into Harbor tasks and bundles."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akm_harbor.corpus import rig
from akm_harbor.corpus.legacy_bundle import convert_stash
from akm_harbor.corpus.legacy_task import LegacyTask, check_tree, read_legacy_task, task_files, workspace_layers
from akm_harbor.corpus.legacy_text import RENAMED, instruction, rename_loaded
from akm_harbor.corpus.new import dockerfile, test_script
from akm_harbor.corpus.sync import sync
from akm_harbor.corpus.task import read_task
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.atomic import filled_whole
from akm_harbor.tables.problems import Problem, Problems

_DROPPED = {"AGENTS.md", ".gitkeep", "README.md"}
_WORKFLOWS = {
    "akm-lookup-before-edit": "lookup-before-write",
    "akm-correct-asset-use": "right-asset-opened",
    "akm-feedback-after-use": "feedback-after-use",
    "akm-negative-feedback-on-failure": "negative-feedback-on-failure",
    "akm-reflect-after-repeated-failure": "revisit-after-repeated-failure",
}
# The legacy runner took every failure of a script for a wrong answer, but a missing tool for its own.
_WRAPPER = """\
#!/bin/sh
bash "$(dirname "$0")/legacy_verify.sh"
code=$?
case $code in 0) exit 0 ;; 126 | 127) exit 2 ;; *) exit 1 ;; esac
"""
_FILE_RELATIVE = re.compile(
    r"(?:pathlib\.)?Path\(__file__\)(?:\.resolve\(\))?\.parent\.parent\s*/\s*[\"']workspace[\"']"
)

Follow = Callable[[list[Path]], Iterable[Path]]


@dataclass(slots=True)
class Conversion:
    """What came of a conversion.

    Attributes:
        tasks: the converted tasks' metadata, by name.
        problems: what could not be converted, and why.
        pristine: names of tasks that pass untouched; None when that could not be tried here.
        notes: what a person has to look at, by task.
    """

    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    pristine: list[str] | None = None
    notes: dict[str, list[str]] = field(default_factory=dict)

    def census(self) -> dict[str, dict[str, int]]:
        """How many tasks there are of each domain, verifier, slice and difficulty."""
        keys = ("domain", "verifier", "slice", "difficulty")
        return {key: dict(sorted(Counter(str(one[key]) for one in self.tasks.values()).items())) for key in keys}

    def summary(self) -> str:
        """The result for a person."""
        total = len(self.tasks) + len(self.problems)
        lines = [f"{len(self.tasks)} of {total} tasks converted"]
        lines += [
            f"  {key}: " + ", ".join(f"{k} {n}" for k, n in counts.items()) for key, counts in self.census().items()
        ]
        for problem in self.problems:
            lines.append(f"not converted: {problem.path}: {problem.detail}")
        if self.pristine is None:
            lines.append("whether any passes untouched was not tried: running verifiers needs bubblewrap and pytest")
        else:
            lines.append(f"{len(self.pristine)} pass untouched: {', '.join(self.pristine) or 'none'}")
        lines.append("next: review.md lists what a person has to decide; `akm-harbor corpus lint` finds the rest")
        return "\n".join(lines)


def _write(path: Path, text: str, *, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if executable:
        path.chmod(0o755)


def _workspace(task: LegacyTask, corpus: Path, target: Path) -> str:
    """Lay the workspace; returns its README, which becomes part of the instruction."""
    readme = ""
    for layer in workspace_layers(task, corpus):
        for path in sorted(p for p in layer.rglob("*") if p.is_file() and not p.is_symlink()):
            relative = path.relative_to(layer)
            own = layer.parent == task.path
            if relative.name == "README.md" and own:
                readme = path.read_text(encoding="utf-8", errors="replace")
            # what an agent loads by itself stays only where it is the task's own file, under another name
            if relative.name in _DROPPED and not (own and relative.name in RENAMED and _is_graded(task, relative.name)):
                continue
            if relative.name in RENAMED and not own:
                continue
            place = target / rename_loaded(relative.as_posix())
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    return readme


def _verifier_sources(task: LegacyTask) -> dict[str, str]:
    files = [task.path / "verify.sh"] if task.verifier == "script" else sorted((task.path / "tests").rglob("*.py"))
    return {file.name: file.read_text(encoding="utf-8", errors="replace") for file in files}


def _is_graded(task: LegacyTask, name: str) -> bool:
    return any(name in source for source in _verifier_sources(task).values())


def _tests(task: LegacyTask, folder: Path) -> list[str]:
    """Write the verifier; returns notes on what was changed in it."""
    notes: list[str] = []
    sources = _verifier_sources(task)
    for name, source in sources.items():
        new = rename_loaded(_FILE_RELATIVE.sub('pathlib.Path("/app")', source))
        if new != source:
            notes.append(f"{name}: paths or file names were changed")
        _write(folder / "tests" / ("legacy_verify.sh" if name == "verify.sh" else name), new)
    if task.verifier == "script":
        _write(folder / "tests" / "verify.sh", _WRAPPER, executable=True)
    _write(folder / "tests" / "test.sh", test_script(task.verifier), executable=True)
    return notes


def _dockerfile(task: LegacyTask) -> str:
    text = dockerfile(task.verifier)
    if any(re.search(r"\bjq\b", source) for source in _verifier_sources(task).values()):
        install = "apt-get update && apt-get install -y --no-install-recommends jq && rm -rf /var/lib/apt/lists/*"
        text = text.replace("WORKDIR", f"RUN command -v jq >/dev/null || ({install})\nWORKDIR")
    return text


def _metadata(
    task: LegacyTask, refs: dict[str, str], *, about_akm: bool, creates: bool
) -> tuple[dict[str, Any], list[str]]:
    data, notes = task.data, ["instruction", "knowledge", "solution"]
    abstention = data.get("abstention_case") is True
    gold = refs.get(task.text("gold_ref").rpartition("//")[2], "")
    if task.text("gold_ref") and not gold:
        notes.append(f"gold_ref: {task.text('gold_ref')} is not in the stash")
    expected = data.get("expected_workflows")
    named = [str(name) for name in expected] if isinstance(expected, list) else []
    notes += [f"workflow: {name} has no counterpart" for name in named if name not in _WORKFLOWS]
    budget = data["budget"]
    result: dict[str, Any] = {
        "domain": task.name.partition("--")[0],
        "family": task.text("task_family") or str(data["id"]),
        "shape": "create-new" if creates else "edit-existing",
        "knowledge": "public" if gold or abstention else "none",
        "slice": task.slice,
        "bundle": data["stash"],
        "gold_ref": gold,
        "difficulty": data["difficulty"],
        "verifier": task.verifier,
        "memory_ability": task.text("memory_ability") or "none",
        "abstention": abstention,
        "repeated_failure_group": task.text("repeated_failure_group"),
        "trap": task.text("workflow_failure_category"),
        "subject": "akm" if about_akm else "",
        "workflows": [_WORKFLOWS[name] for name in named if name in _WORKFLOWS],
        "keywords": [task.text("akm_keywords")] if task.text("akm_keywords") else [],
        "budget_tokens": budget.get("tokens", 0),
        "budget_wall_ms": budget.get("wallMs", 0),
        "legacy_id": data["id"],
        "review": notes,
    }
    return {key: value for key, value in result.items() if value or key == "memory_ability"}, notes


def _toml(task: LegacyTask, metadata: dict[str, Any]) -> str:
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in metadata.items()]
    seconds = max(120, int(metadata.get("budget_wall_ms", 0)) * 3 // 1000)
    return (
        f'schema_version = "1.4"\n\n[task]\nname = "akm-bench/{task.name}"\nversion = "1.0"\n'
        f"description = {json.dumps(task.data['title'], ensure_ascii=False)}\n\n[metadata]\n" + "\n".join(lines) +
        f"\n\n[agent]\ntimeout_sec = 600.0\n\n[verifier]\ntimeout_sec = {seconds}.0\n\n"
        "[environment]\nbuild_timeout_sec = 600.0\n"
    )  # fmt: skip


def convert_task(
    task: LegacyTask, corpus: Path, refs: dict[str, str], target: Path
) -> tuple[dict[str, Any], list[str]]:
    """Write one Harbor task.

    Args:
        task: the legacy task.
        corpus: the legacy corpus, for the shared layers of its workspace.
        refs: old to new references of its stash.
        target: the new folder.

    Returns:
        Its metadata, and notes for a person.
    """
    readme = _workspace(task, corpus, target / "environment" / "workspace")
    # an empty workspace still has to exist for COPY
    (target / "environment" / "workspace").mkdir(parents=True, exist_ok=True)
    starts_with = [p for p in (target / "environment" / "workspace").rglob("*") if p.is_file()]
    if not starts_with:
        _write(target / "environment" / "workspace" / ".keep", "")
    text, about_akm = instruction(str(task.data["title"]), readme, list(_verifier_sources(task).values()))
    metadata, notes = _metadata(task, refs, about_akm=about_akm, creates=not starts_with)
    _write(target / "instruction.md", text)
    _write(target / "environment" / "Dockerfile", _dockerfile(task))
    notes = [*notes, *_tests(task, target)]
    _write(target / "task.toml", _toml(task, metadata))
    sync([read_task(target)])
    return metadata, notes


def _review(result: Conversion) -> str:
    lines = ["# To decide by a person", "", "Each converted task lacks a solution. Besides:", ""]
    for name, notes in result.notes.items():
        more = [note for note in notes if note not in ("instruction", "knowledge", "solution")]
        lines.append(f"- `{name}`: read the instruction" + "".join(f"; {note}" for note in more))
    if result.pristine:
        lines += ["", "Solved before anybody starts (make the workspace unsolved, or the verifier ask for more):", ""]
        lines += [f"- `{name}`" for name in result.pristine]
    if result.problems:
        lines += ["", "Not converted:", "", *(f"- `{p.path}`: {p.detail}" for p in result.problems)]
    return "\n".join(lines) + "\n"


def _corpus_of(source: Path) -> Path:
    for candidate in (source / "fixtures" / "corpus", source / "corpus", source):
        if (candidate / "tasks").is_dir() and (candidate.parent / "stashes").is_dir():
            return candidate
    raise AkmHarborError(
        "no legacy corpus in it", path=source, hint="It has fixtures/corpus/tasks and fixtures/stashes."
    )  # fmt: skip


def convert_checkout(source: Path, output: Path, follow: Follow = iter) -> Conversion:
    """Convert everything in a checkout; what cannot be converted is reported, and the rest goes on.

    Args:
        source: the checkout.
        output: gets `tasks/`, `bundles/`, `review.md` and `conversion.json`; must be new or empty.
        follow: wraps the list of task files, e.g. to show progress.

    Raises:
        AkmHarborError: there is no legacy corpus, or the output folder is not empty.
    """
    corpus = _corpus_of(source)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise AkmHarborError("is not an empty folder", path=output, hint="Name a new one.")
    with filled_whole(output):
        return _convert(corpus, output, follow)


def _convert(corpus: Path, output: Path, follow: Follow) -> Conversion:
    problems, result = Problems(), Conversion()
    refs: dict[str, dict[str, str]] = {}
    for stash in sorted(p for p in (corpus.parent / "stashes").iterdir() if p.is_dir() and not p.is_symlink()):
        try:
            refs[stash.name] = convert_stash(stash, output / "bundles" / stash.name)
        except AkmHarborError as error:
            problems.add(error.path or stash, "stash-not-converted", error.message, "left out")
    runs = rig.why_not() is None
    result.pristine = [] if runs else None
    for file in follow(list(task_files(corpus / "tasks"))):
        try:
            task = read_legacy_task(file, corpus.parent / "stashes")
            for layer in workspace_layers(task, corpus):
                check_tree(layer)
            if task.data["stash"] not in refs:
                raise AkmHarborError(f"its stash {task.data['stash']!r} could not be converted", path=file)  # noqa: TRY301
            if task.name in result.tasks:
                raise AkmHarborError(f"another task is already called {task.name}", path=file)  # noqa: TRY301
            target = output / "tasks" / task.name
            metadata, notes = convert_task(task, corpus, refs[task.data["stash"]], target)
        except AkmHarborError as error:
            problems.add(error.path or file, "task-not-converted", error.message, "left out")
            continue
        result.tasks[task.name], result.notes[task.name] = metadata, notes
        if result.pristine is not None:
            with rig.bench(read_task(target)) as place:
                if place.judge().reward == 1:
                    result.pristine.append(task.name)
    result.problems = list(problems)
    _write(output / "review.md", _review(result))
    report = {
        "census": result.census(), "converted": sorted(result.tasks), "pass_untouched": result.pristine,
        "problems": [{"path": p.path, "kind": p.kind, "detail": p.detail} for p in result.problems],
    }  # fmt: skip
    _write(output / "conversion.json", json.dumps(report, indent=1) + "\n")
    return result
