"""The corpus linter: every rule by its id, what it found where, why it matters, how to mend it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from akm_harbor.corpus.bundle import Asset, assets, find_bundles_dir
from akm_harbor.corpus.mutate import Mutant
from akm_harbor.corpus.task import CorpusTask, read_task, task_folders
from akm_harbor.errors import AkmHarborError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a rule found.

    Attributes:
        rule: the rule's id.
        path: the file or folder.
        detail: what is wrong there.
    """

    rule: str
    path: Path
    detail: str


@dataclass(slots=True)
class RunPlan:
    """How the rules that run something go about it.

    Attributes:
        most: near misses a task, at most; None for all.
        jobs: tasks at a time.
        akm: an akm to ask for the gold asset's rank.
        on_task: called after each task.
    """

    most: int | None = 12
    jobs: int = 2
    akm: str | None = None
    on_task: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Tried:
    """What running one task showed.

    Attributes:
        findings: what the rules say.
        mutants: how many near misses were judged.
        excused: near misses that are right answers too, each with the reason given.
    """

    findings: list[Finding] = field(default_factory=list)
    mutants: int = 0
    excused: list[tuple[Mutant, str]] = field(default_factory=list)


@dataclass(slots=True)
class Corpus:
    """What the rules look at.

    Attributes:
        root: the folder of tasks.
        tasks: those that could be read.
        bundles_dir: where their bundles lie; None when there are none.
        plan: how to run them.
        tried: what running them showed, by folder; each is run once, however many rules ask.
    """

    root: Path
    tasks: list[CorpusTask]
    bundles_dir: Path | None
    plan: RunPlan = field(default_factory=RunPlan)
    tried: dict[Path, Tried] = field(default_factory=dict)
    _assets: dict[str, list[Asset]] = field(default_factory=dict)

    def assets(self, name: str) -> list[Asset] | None:
        """The assets of a bundle by its name; None when there is no such bundle."""
        if self.bundles_dir is None or not name or "/" in name or name.startswith("."):
            return None
        if name not in self._assets:
            folder = self.bundles_dir / name
            if not folder.is_dir():
                return None
            self._assets[name] = list(assets(folder))
        return self._assets[name]

    def bundle_text(self, task: CorpusTask) -> str:
        """All text of a task's bundle, "" without one."""
        return "\n".join(asset.text for asset in self.assets(task.text("bundle")) or [])


Check = Callable[[Corpus], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the linter.

    Attributes:
        id: its stable name.
        group: `static`, `run` (executes solutions) or `akm` (asks an akm).
        why: why it matters, one sentence.
        mend: what to do, one sentence.
        check: finds it.
    """

    id: str
    group: str
    why: str
    mend: str
    check: Check


RULES: dict[str, Rule] = {}


def rule(name: str, why: str, mend: str, group: str = "static") -> Callable[[Check], Check]:
    """Register a function as a rule."""

    def register(check: Check) -> Check:
        RULES[name] = Rule(name, group, why, mend, check)
        return check

    return register


def read_corpus(root: Path, bundles_dir: Path | None = None) -> tuple[Corpus, list[Finding]]:
    """Read a folder of tasks, or one task; what cannot be read is a finding, and the rest goes on.

    Raises:
        AkmHarborError: there is nothing at that path.
    """
    tasks: list[CorpusTask] = []
    findings: list[Finding] = []
    for folder in task_folders(root):
        try:
            tasks.append(read_task(folder))
        except AkmHarborError as error:
            findings.append(Finding("harbor-refuses", Path(error.path or folder), error.message))
    return Corpus(root, tasks, bundles_dir or find_bundles_dir(root)), findings


def run_rules(corpus: Corpus, rules: Sequence[Rule]) -> Iterator[Finding]:
    """Everything the rules find, in the order of the rules."""
    for one in rules:
        yield from one.check(corpus)


def select(groups: Iterable[str], only: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Rule]:
    """Choose rules by group, then by id.

    Raises:
        AkmHarborError: an id that no rule has.
    """
    import akm_harbor.corpus.rules_run
    import akm_harbor.corpus.rules_static
    import akm_harbor.corpus.rules_text  # noqa: F401

    wanted, unwanted = set(only), set(ignore)
    unknown = sorted((wanted | unwanted) - RULES.keys())
    if unknown:
        raise AkmHarborError(f"no rule is called {', '.join(unknown)}", hint=f"Rules: {', '.join(sorted(RULES))}.")
    chosen = (one for one in RULES.values() if one.group in set(groups) and one.id not in unwanted)
    return [one for one in chosen if not wanted or one.id in wanted]


def report(findings: Sequence[Finding], base: Path) -> str:
    """The findings as text: one line each, then why and how to mend, once a rule."""
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule].append(finding)
    lines: list[str] = []
    for name, found in by_rule.items():
        for finding in found:
            path = finding.path.relative_to(base) if finding.path.is_relative_to(base) else finding.path
            lines.append(f"{path}: {name}: {finding.detail}")
        lines += [f"  why:  {RULES[name].why}", f"  mend: {RULES[name].mend}", ""]
    return "\n".join(lines)
