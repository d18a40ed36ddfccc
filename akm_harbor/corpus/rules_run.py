"""Rules that run solutions and verifiers: does the task score what it says it scores?"""

import json
import os
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from akm_harbor.corpus.lint import Corpus, Finding, Tried, rule
from akm_harbor.corpus.mutate import changed_files, mutants, sample, tokens
from akm_harbor.corpus.rig import Bench, Outcome, bench
from akm_harbor.corpus.rules_text import visible_text
from akm_harbor.corpus.task import CorpusTask
from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_toml

# What joins told words into one token: an address, a pair, a path.
_PARTS = re.compile(r"[@/:=,+]")


def _excuses(task: CorpusTask) -> dict[tuple[str, str], str]:
    """Near misses that are right as well: (file, the line after) -> why, from solution/equivalent.toml."""
    file = task.path / "solution" / "equivalent.toml"
    if not file.is_file():
        return {}
    listed = parse_toml(file.read_text(encoding="utf-8")).get("mutant", [])
    return {(one["file"], one["now"].strip()): one["why"] for one in listed}


def _try_mutants(
    place: Bench, before: dict[str, bytes], after: dict[str, bytes], tried: Tried, most: int | None
) -> None:
    task = place.task
    excuses = _excuses(task)
    for mutant in sample(mutants(before, after), most):
        files = dict(after)
        if mutant.data is None:
            files.pop(mutant.file)
        else:
            files[mutant.file] = mutant.data
        place.reset(files)
        tried.mutants += 1
        outcome = place.judge()
        if outcome.reward == 0:
            continue
        reason = excuses.get((mutant.file, mutant.now.strip()))
        if outcome.reward == 1 and reason:
            tried.excused.append((mutant, reason))
            continue
        scored = "1" if outcome.reward == 1 else "nothing (the verifier broke)"
        tried.findings.append(Finding("mutant-passes", task.path, f"scores {scored}: {mutant}"))


def _try_scripts(task: CorpusTask, place: Bench, tried: Tried) -> None:
    for folder, wanted, name in (("wrong", 0, "control-passes"), ("variants", 1, "variant-fails")):
        for script in sorted((task.path / "solution" / folder).glob("*.sh")):
            place.reset()
            place.solve(script)
            outcome = place.judge()
            if outcome.reward != wanted:
                detail = f"scores {outcome.reward}: {_last_line(outcome)}"
                tried.findings.append(Finding(name, script, detail))


def _last_line(outcome: Outcome) -> str:
    lines = [line for line in outcome.output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"


def _underivable(corpus: Corpus, task: CorpusTask, before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Tokens of the solution's files that stand nowhere the treated agent can read."""
    told = tokens(visible_text(task)) | tokens(corpus.bundle_text(task)) | set(task.texts("public_tokens"))
    told |= set(task.metadata.get("derived", {}))
    parts = {part.lower() for token in told for part in (token, *_PARTS.split(token))}
    missing: list[str] = []
    for name in changed_files(before, after):
        text = after[name].decode("utf-8", errors="replace")
        old = tokens(before.get(name, b"").decode("utf-8", errors="replace"))
        new = {token for line in text.splitlines() if not line.strip().startswith("#") for token in tokens(line)}
        for token in sorted(new - old - told):
            pieces = [piece for piece in _PARTS.split(token) if any(c.isalnum() for c in piece)]
            if any(piece.lower() not in parts for piece in pieces):
                missing.append(token)
    return missing


def try_task(corpus: Corpus, task: CorpusTask) -> Tried:
    """Run one task pristine, solved, with its controls and with near misses of its solution."""
    tried = Tried()
    solve = task.path / "solution" / "solve.sh"
    with bench(task) as place:
        pristine = place.judge()
        if pristine.reward != 0:
            tried.findings.append(
                Finding("pristine-passes", task.path, f"scores {pristine.reward}: {_last_line(pristine)}")
            )
        if not solve.is_file():
            return tried
        try:
            place.reset()
            place.solve(solve)
            solved = place.judge()
            if solved.reward != 1:
                detail = f"scores {solved.reward}: {_last_line(solved)}"
                tried.findings.append(Finding("oracle-fails", solve, detail))
                return tried
            for token in _underivable(corpus, task, pristine.files, solved.files):
                tried.findings.append(Finding("not-derivable", task.path, f"`{token}` is told nowhere"))
            _try_scripts(task, place, tried)
            _try_mutants(place, pristine.files, solved.files, tried, corpus.plan.most)
        except (AkmHarborError, OSError, tomllib.TOMLDecodeError, KeyError) as error:
            tried.findings.append(Finding("oracle-fails", solve, str(error)))
    return tried


def try_all(corpus: Corpus) -> list[Tried]:
    """Run every task once, however many rules ask."""
    todo = [task for task in corpus.tasks if task.path not in corpus.tried]

    def one(task: CorpusTask) -> None:
        corpus.tried[task.path] = try_task(corpus, task)
        corpus.plan.on_task()

    with ThreadPoolExecutor(corpus.plan.jobs) as pool:
        list(pool.map(one, todo))
    return [corpus.tried[task.path] for task in corpus.tasks]


def _found(corpus: Corpus, name: str) -> Iterator[Finding]:
    for tried in try_all(corpus):
        yield from (finding for finding in tried.findings if finding.rule == name)


@rule(
    "pristine-passes",
    "A workspace that passes untouched rewards doing nothing.",
    "Begin without the answer, or make the verifier ask for it.",
    group="run",
)
def pristine_passes(corpus: Corpus) -> Iterator[Finding]:
    """The workspace as it is scores 0."""
    yield from _found(corpus, "pristine-passes")


@rule(
    "oracle-fails",
    "A task whose own solution fails cannot be solved.",
    "Make solution/solve.sh and the verifier agree.",
    group="run",
)
def oracle_fails(corpus: Corpus) -> Iterator[Finding]:
    """The solution scores 1."""
    yield from _found(corpus, "oracle-fails")


@rule(
    "mutant-passes",
    "A verifier that takes a near miss for an answer cannot see what it is there to see.",
    "Make the verifier exact, or give the reason in solution/equivalent.toml why the near miss is right.",
    group="run",
)
def mutant_passes(corpus: Corpus) -> Iterator[Finding]:
    """Each single-token mutation of the solution scores 0."""
    yield from _found(corpus, "mutant-passes")


@rule(
    "control-passes",
    "A wrong answer that is shipped as such must fail, the public default above all.",
    "Make the verifier exact, or move the script to solution/variants/.",
    group="run",
)
def control_passes(corpus: Corpus) -> Iterator[Finding]:
    """solution/wrong/*.sh score 0."""
    yield from _found(corpus, "control-passes")


@rule(
    "variant-fails",
    "A right answer in another spelling must pass: order, quoting and line breaks carry no meaning.",
    "Make the verifier indifferent to it, or move the script to solution/wrong/.",
    group="run",
)
def variant_fails(corpus: Corpus) -> Iterator[Finding]:
    """solution/variants/*.sh score 1."""
    yield from _found(corpus, "variant-fails")


@rule(
    "not-derivable",
    "A token that stands neither in instruction, workspace nor bundle can only be guessed.",
    "Tell it, or list it: [metadata].public_tokens if the world knows it, [metadata.derived] if it follows.",
    group="run",
)
def not_derivable(corpus: Corpus) -> Iterator[Finding]:
    """Each token of the solution is told somewhere."""
    yield from _found(corpus, "not-derivable")


@rule(
    "control-missing",
    "A local-convention task is only one if the answer everybody knows fails.",
    "Ship that answer as solution/wrong/public-default.sh.",
)
def control_missing(corpus: Corpus) -> Iterator[Finding]:
    """Local tasks ship the public default."""
    for task in corpus.tasks:
        if task.text("knowledge") == "local" and not (task.path / "solution/wrong/public-default.sh").is_file():
            yield Finding("control-missing", task.path / "solution", "no wrong/public-default.sh")


def gold_rank(akm: str, bundle: Path, query: str, gold: str) -> int | None:
    """The 1-based rank of an asset in akm's search of a bundle; None if it is not among the first 10.

    Raises:
        AkmHarborError: akm failed.
    """
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        home = Path(folder)
        config = {
            "configVersion": "0.9.0", "semanticSearchMode": "off", "registries": [], "defaultBundle": "corpus",
            "bundles": {"corpus": {"path": str(bundle), "writable": False}},
        }  # fmt: skip
        (home / "config").mkdir()
        (home / "config" / "config.json").write_text(json.dumps(config), encoding="utf-8")
        places = {f"AKM_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
        env = {**os.environ, **places, "AKM_EVENT_SOURCE": "audit"}
        for command in (["index"], ["search", query, "--limit", "10", "--detail", "full", "--no-track-usage"]):
            done = subprocess.run(
                [*akm.split(), *command], env=env, capture_output=True, text=True, check=False, timeout=_AKM_TIMEOUT
            )
            if done.returncode:
                raise AkmHarborError(f"`akm {command[0]}` failed: {done.stderr.strip()[:300]}", path=bundle)
        refs = [str(hit.get("ref", "")).split("//")[-1] for hit in json.loads(done.stdout).get("hits", [])]
    return refs.index(gold) + 1 if gold in refs else None


_AKM_TIMEOUT = 60
_GOOD_RANK = 5


@rule(
    "gold-hard-to-find",
    "Where akm itself does not rank the asset high, a difference says more about search than about memory.",
    "Mend the asset's description and tags, or [metadata].keywords.",
    group="akm",
)
def gold_hard_to_find(corpus: Corpus) -> Iterator[Finding]:
    """Akm finds the gold asset among the first five by the task's keywords."""
    if corpus.plan.akm is None or corpus.bundles_dir is None:
        return
    for task in corpus.tasks:
        if not task.gold_ref or corpus.assets(task.text("bundle")) is None:
            continue
        query = " ".join(task.texts("keywords")) or task.name.replace("-", " ")
        rank = gold_rank(corpus.plan.akm, corpus.bundles_dir / task.text("bundle"), query, task.gold_ref)
        if rank is None or rank > _GOOD_RANK:
            where = "not among the first 10" if rank is None else f"at rank {rank}"
            yield Finding("gold-hard-to-find", task.path / "task.toml", f"`akm search {query}` has it {where}")
