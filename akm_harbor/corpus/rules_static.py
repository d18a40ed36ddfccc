"""Rules about a task's files and metadata, without running anything."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from akm_harbor.corpus.lint import Corpus, Finding, rule
from akm_harbor.corpus.metadata import complaints
from akm_harbor.corpus.registry import REGISTRY, registry_complaints
from akm_harbor.corpus.sync import find_specification, generated_files, read_specification
from akm_harbor.corpus.task import CorpusTask
from akm_harbor.errors import AkmHarborError

# Names that coding agents load by themselves from the working folder.
LOADED_NAMES = {
    "opencode.json", "opencode.jsonc", "agents.md", "claude.md", "context.md", "gemini.md", "skill.md", "tui.json",
    ".cursorrules", ".mcp.json", "agent.md",
}  # fmt: skip
_LOADED_DIRS = {".opencode", ".claude", ".cursor", ".agents"}
_LOADED_IN_TEXT = re.compile(
    r"(?<![\w-])(opencode\.jsonc?|AGENTS\.md|CLAUDE\.md|CONTEXT\.md|GEMINI\.md|\.opencode/|\.claude/|\.mcp\.json)"
)
_SIZE_LIMIT = 1_000_000


@rule(
    "harbor-refuses",
    "Harbor drops a task it cannot read from a dataset without a word.",
    "Mend what Harbor's own model complains about.",
)
def harbor_refuses(corpus: Corpus) -> Iterator[Finding]:
    """Ask Harbor's own model."""
    from akm_harbor.corpus.harbor_contract import refusal

    for task in corpus.tasks:
        reason = refusal(task.path)
        if reason:
            yield Finding("harbor-refuses", task.path, reason)


@rule(
    "unknown-key",
    "Harbor ignores keys it does not know, so a typing error changes nothing and is never seen.",
    "Correct the key, or move it under [metadata].",
)
def unknown_key(corpus: Corpus) -> Iterator[Finding]:
    """Keys that Harbor has no field for."""
    from akm_harbor.corpus.harbor_contract import unknown_keys

    for task in corpus.tasks:
        for key in unknown_keys(dict(task.config)):
            yield Finding("unknown-key", task.path / "task.toml", f"Harbor has no key `{key}`")


@rule(
    "name-mismatch",
    "Results carry [task].name and datasets the folder's name; joining them needs both to agree.",
    'Set [task].name to "akm-harbor/<folder>" (any organisation), with a lower-case folder of <domain>--<name>.',
)
def name_mismatch(corpus: Corpus) -> Iterator[Finding]:
    """The name is the folder's, and nobody else's."""
    seen: dict[str, Path] = {}
    for task in corpus.tasks:
        table = task.config.get("task")
        name = str(table.get("name", "")) if isinstance(table, dict) else ""
        if name.rpartition("/")[2] != task.name:
            yield Finding(
                "name-mismatch", task.path / "task.toml", f"[task].name is {name!r}, the folder {task.name!r}"
            )
        if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*--[a-z0-9]+(?:-[a-z0-9]+)*", task.name):
            yield Finding("name-mismatch", task.path, "the folder's name is not of the form <domain>--<name>")
        if name and name in seen:
            yield Finding("name-mismatch", task.path, f"[task].name is also that of {seen[name].name}")
        seen[name] = task.path


@rule(
    "metadata-incomplete",
    "Slices, families and bundles decide what a difference may be called; the analysis joins on them.",
    "Fill in [metadata] as docs/corpus.md lists it.",
)
def metadata_incomplete(corpus: Corpus) -> Iterator[Finding]:
    """Every key the analysis needs, with a value it knows."""
    for task in corpus.tasks:
        for line in complaints(task):
            yield Finding("metadata-incomplete", task.path / "task.toml", line)


@rule(
    "gold-unresolved",
    "Whether the right asset was found can only be judged if the reference names one.",
    "Name an asset of the task's own bundle as <plural dir>/<name>, e.g. skills/inkwell.",
)
def gold_unresolved(corpus: Corpus) -> Iterator[Finding]:
    """The bundle exists and holds the gold asset."""
    for task in corpus.tasks:
        bundle = task.text("bundle")
        held = corpus.assets(bundle)
        if held is None:
            yield Finding("gold-unresolved", task.path / "task.toml", f"there is no bundle {bundle!r}")
        elif task.gold_ref and task.gold_ref not in {asset.ref for asset in held}:
            yield Finding("gold-unresolved", task.path / "task.toml", f"{bundle} holds no asset {task.gold_ref!r}")


@rule(
    "asset-unindexable",
    "akm finds assets by name, description and tags; without them it is not searchable.",
    "Begin the file with frontmatter that has `description` and `tags`.",
)
def asset_unindexable(corpus: Corpus) -> Iterator[Finding]:
    """Frontmatter that akm indexes."""
    folders = sorted(p for p in corpus.bundles_dir.iterdir() if p.is_dir()) if corpus.bundles_dir else []
    for name in (folder.name for folder in folders):
        for asset in corpus.assets(name) or []:
            front = asset.frontmatter
            if asset.path.suffix != ".md":
                continue
            if front is None:
                yield Finding("asset-unindexable", asset.path, "it has no frontmatter, or one that is not YAML")
            elif not isinstance(front.get("description"), str) or not isinstance(front.get("tags"), list):
                yield Finding("asset-unindexable", asset.path, "its frontmatter lacks `description` or `tags`")
            elif re.search(r"(?<![\w`$])\$(?:ARGUMENTS|[1-9])\b", asset.body):
                yield Finding("asset-unindexable", asset.path, "$1 or $ARGUMENTS in it makes akm take it for a command")


def _named_files(task: CorpusTask) -> Iterator[tuple[Path, str]]:
    for file in task.workspace_files():
        relative = file.relative_to(task.workspace)
        if relative.name.lower() in LOADED_NAMES or _LOADED_DIRS & set(relative.parts):
            yield file, f"the workspace holds {relative}"
    texts = [
        task.path / "instruction.md",
        *sorted((task.path / "tests").glob("*")),
        *sorted((task.path / "solution").glob("*")),
    ]
    for file in texts:
        if file.is_file() and file.name not in ("akm_verify.py", "compliance.json"):
            found = _LOADED_IN_TEXT.search(file.read_text(encoding="utf-8", errors="replace"))
            if found:
                yield file, f"it works with a file called {found.group(1)}"


@rule(
    "loaded-by-agents",
    "Agents load such a file by themselves: it changes the run (or stops it) instead of only being graded.",
    "Give the file another name.",
)
def loaded_by_agents(corpus: Corpus) -> Iterator[Finding]:
    """No file that an agent would load or rewrite."""
    for task in corpus.tasks:
        for file, detail in _named_files(task):
            yield Finding("loaded-by-agents", file, detail)


@rule(
    "answer-in-image",
    "What the image holds, the agent can read.",
    "Let the Dockerfile copy workspace/ only, and keep solution and tests out of environment/.",
)
def answer_in_image(corpus: Corpus) -> Iterator[Finding]:
    """Neither solution nor verifier in the build context."""
    for task in corpus.tasks:
        environment = task.path / "environment"
        for file in sorted(environment.rglob("*")) if environment.is_dir() else []:
            if file.name in ("solve.sh", "test.sh", "akm_verify.py", "compliance.json", "SKILL.md"):
                yield Finding("answer-in-image", file, "it would be in the image")
        dockerfile = environment / "Dockerfile"
        text = dockerfile.read_text(encoding="utf-8", errors="replace") if dockerfile.is_file() else ""
        for line in text.splitlines():
            if re.match(r"\s*(COPY|ADD)\b", line, re.IGNORECASE) and not re.search(r"\bworkspace/", line):
                yield Finding("answer-in-image", dockerfile, f"it copies more than workspace/: {line.strip()}")


@rule(
    "stray-file",
    "Links, caches and large files change a task's digest, leave the tree or slow every trial.",
    "Remove it.",
)
def stray_file(corpus: Corpus) -> Iterator[Finding]:
    """Nothing that does not belong into a task."""
    for task in corpus.tasks:
        for folder, folders, files in os.walk(task.path):
            for name in [*folders, *files]:
                path = Path(folder, name)
                if path.is_symlink():
                    yield Finding("stray-file", path, "a link")
                elif name in ("__pycache__", ".pytest_cache", ".DS_Store") or name.endswith((".pyc", "~")):
                    yield Finding("stray-file", path, "a leftover")
                elif path.is_file() and path.stat().st_size > _SIZE_LIMIT:
                    yield Finding("stray-file", path, f"larger than {_SIZE_LIMIT} bytes")


@rule(
    "generated-stale",
    "A verifier helper that differs from the tested one can score differently.",
    "Run `akm-harbor corpus sync`.",
)
def generated_stale(corpus: Corpus) -> Iterator[Finding]:
    """Helper and compiled workflows are those that sync would write."""
    for task in corpus.tasks:
        try:
            for name in task.workflows:
                read_specification(find_specification(task, name))
            stale = [file for file in generated_files([task]) if file.stale]
        except AkmHarborError as error:
            yield Finding("generated-stale", task.path, error.message)
            continue
        for file in stale:
            yield Finding("generated-stale", file.path, "missing or not what sync writes")


@rule(
    "verifier-mismatch",
    "The kind of verifier decides what the image must hold and what reports it leaves.",
    "Make [metadata].verifier say what tests/test.sh runs.",
)
def verifier_mismatch(corpus: Corpus) -> Iterator[Finding]:
    """`pytest` has test modules and an image with pytest, `script` has verify.sh."""
    for task in corpus.tasks:
        tests = task.path / "tests"
        has = {"pytest": any(tests.glob("test_*.py")), "script": (tests / "verify.sh").is_file()}
        kind = task.text("verifier")
        if kind in has and not has[kind]:
            yield Finding("verifier-mismatch", tests, f"`{kind}` is declared, but its files are missing")
        dockerfile = task.path / "environment" / "Dockerfile"
        if kind == "pytest" and dockerfile.is_file() and "pytest" not in dockerfile.read_text(errors="replace"):
            yield Finding("verifier-mismatch", dockerfile, "the image does not install pytest")


@rule(
    "solution-missing",
    "Without a solution nobody knows that the task can be solved, or what a near miss of it scores.",
    "Write solution/solve.sh.",
)
def solution_missing(corpus: Corpus) -> Iterator[Finding]:
    """There is a solution."""
    for task in corpus.tasks:
        if not (task.path / "solution" / "solve.sh").is_file():
            yield Finding("solution-missing", task.path, "no solution/solve.sh")


@rule(
    "review-pending",
    "A converter guesses what only a person can decide.",
    "Decide it, then remove it from [metadata].review.",
)
def review_pending(corpus: Corpus) -> Iterator[Finding]:
    """Nothing waits for a person."""
    for task in corpus.tasks:
        for line in task.texts("review"):
            yield Finding("review-pending", task.path / "task.toml", f"to decide: {line}")


@rule(
    "slice-overlap",
    "A family tuned on train and confirmed on eval needs instances that differ.",
    "Give the two tasks different values, so that their solutions differ.",
)
def slice_overlap(corpus: Corpus) -> Iterator[Finding]:
    """No two tasks share a solution."""
    seen: dict[str, list[CorpusTask]] = defaultdict(list)
    for task in corpus.tasks:
        script = task.path / "solution" / "solve.sh"
        if script.is_file():
            lines = [line.strip() for line in script.read_text(errors="replace").splitlines()]
            seen["\n".join(line for line in lines if line and not line.startswith("#"))].append(task)
    for same in seen.values():
        if len(same) > 1:
            names = ", ".join(task.name for task in same)
            yield Finding("slice-overlap", same[1].path / "solution", f"the same solution in {names}")


@rule(
    "registry-stale",
    "A released version that changes is two measurements under one name.",
    "Undo the change, or release it as a new version: `akm-harbor corpus register --version X.Y`.",
)
def registry_stale(corpus: Corpus) -> Iterator[Finding]:
    """Released versions are frozen, and every task is in a dataset."""
    if (corpus.root / REGISTRY).is_file():
        for line in registry_complaints(corpus.root, corpus.tasks):
            yield Finding("registry-stale", corpus.root / REGISTRY, line)
