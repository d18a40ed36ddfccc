"""All that the memory report shows, computed once: frozen values, no files, no HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akm_harbor.errors import UsageError
from akm_harbor.memory.answer.variance import Components, components
from akm_harbor.memory.evaluation.accuracy import ALL, CEILING, FLOOR, Difference, Score, choose_baseline
from akm_harbor.memory.evaluation.accuracy import differences as paired
from akm_harbor.memory.evaluation.accuracy import scores as score_cells
from akm_harbor.memory.evaluation.panels import Panel, Refusal, panels
from akm_harbor.memory.evaluation.retrieval import Curve, curves
from akm_harbor.memory.evaluation.simulate import HARD, SCENARIOS, Coverage, simulate
from akm_harbor.memory.evaluation.sources import Sources
from akm_harbor.stats.results import Estimate, check_coverage


@dataclass(frozen=True, slots=True)
class Options:
    """What a reader may choose.

    Attributes:
        baseline: the arm the others are compared with; empty: chosen.
        level: coverage of the intervals.
        replicates: studies simulated a scenario.
    """

    baseline: str = ""
    level: float = 0.95
    replicates: int = 20_000

    def __post_init__(self) -> None:
        check_coverage(self.level)
        if self.replicates < 100:
            raise UsageError(f"{self.replicates} replicates measure nothing", hint="At least 100; 20000 is usual.")


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit of the answer key says about this panel.

    Attributes:
        source: who audited.
        flagged: questions whose published key is wrong or unanswerable.
        questions: questions asked.
        above: arms whose official mean is above what the key allows.
    """

    source: str
    flagged: int
    questions: int
    above: tuple[str, ...]

    @property
    def ceiling(self) -> float:
        """The share of questions with a sound key: an honest memory scores no more, but for luck."""
        return 1 - self.flagged / self.questions


@dataclass(frozen=True, slots=True)
class PanelResult:
    """One panel, analysed.

    Attributes:
        panel: protocol and rows.
        baseline: the arm of the paired differences.
        scores: every arm, budget and group.
        differences: every other arm minus the baseline.
        variance: where the uncertainty comes from, by arm and budget.
        audit: None where no audit of this data is known.
        judge_probe: rates of the judge's errors on made-up answers, None without a judge or a probe.
        incomplete: why a study stopped early; empty: it did not.
        palette: every arm on the page, in one order: an arm looks the same on every chart.
    """

    panel: Panel
    baseline: str
    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]
    variance: tuple[Components, ...]
    audit: Audit | None
    judge_probe: Mapping[str, Any] | None
    incomplete: tuple[str, ...]
    palette: tuple[str, ...]

    @property
    def arms(self) -> list[str]:
        """The arms in the order they were run."""
        return list(dict.fromkeys(score.arm for score in self.scores))

    @property
    def types(self) -> list[str]:
        """The question types."""
        return sorted({score.group for score in self.scores} - {ALL})

    @property
    def budgets(self) -> list[int | None]:
        """The budgets, as is first."""
        found = {score.budget for score in self.scores}
        return sorted(found, key=lambda b: (b is not None, b or 0))

    def overall(self) -> list[Score]:
        """The scores over all questions."""
        return [score for score in self.scores if score.group == ALL]

    def reference(self, arm: str, group: str = ALL) -> float | None:
        """Mean of an arm of reference (floor or ceiling), as is where it was run so."""
        listed = [s for s in self.scores if s.arm == arm and s.group == group and s.value.value is not None]
        best = min(listed, key=lambda s: (s.budget is not None, -(s.budget or 0)), default=None)
        return best.value.value if best else None

    @property
    def floor(self) -> float | None:
        """What the reader scores without any memory."""
        return self.reference(FLOOR)

    @property
    def ceiling(self) -> float | None:
        """What it scores when given exactly the evidence."""
        return self.reference(CEILING)


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Everything on the page.

    Attributes:
        panels: comparable groups.
        refusals: why groups are kept apart.
        curves: retrieval at k, from probes.
        coverage: the interval's measured coverage.
        hard: the same where every method is strained.
        options: what was chosen.
    """

    panels: tuple[PanelResult, ...]
    refusals: tuple[Refusal, ...]
    curves: tuple[Curve, ...]
    coverage: tuple[Coverage, ...]
    hard: tuple[Coverage, ...]
    options: Options


def analyse(sources: Sources, options: Options) -> MemoryResult:
    """Compute everything.

    Raises:
        UsageError: no panel has the baseline asked for.
    """
    found, refusals = panels(sources.studies)
    everywhere = dict.fromkeys(arm for panel in found for arm in panel.rows["arm"])
    if options.baseline and options.baseline not in everywhere:
        raise UsageError(f"no arm {options.baseline!r}", hint=f"There are {', '.join(everywhere)}.")
    retrieved = curves(sources.probes)
    palette = tuple(dict.fromkeys([*everywhere, *(curve.arm for curve in retrieved)]))
    return MemoryResult(
        tuple(_panel(panel, options, palette) for panel in found),
        tuple(refusals),
        tuple(retrieved),
        tuple(simulate(SCENARIOS, options.replicates)),
        tuple(simulate(HARD, options.replicates, seed=1)),
        options,
    )


def _panel(panel: Panel, options: Options, palette: tuple[str, ...]) -> PanelResult:
    rows = panel.rows
    arms = list(dict.fromkeys(rows["arm"]))
    baseline = choose_baseline(arms, options.baseline if options.baseline in arms else "")
    scored = score_cells(rows, options.level)
    probes = [m["judge_probe"] for m in panel.manifests if m.get("judge_probe")]
    stopped = [str(m.get("stopped") or "stopped early") for m in panel.manifests if m.get("complete") is False]
    return PanelResult(
        panel,
        baseline,
        tuple(scored),
        tuple(paired(rows, baseline, options.level)),
        tuple(components(rows)),
        _audit(panel, scored),
        probes[0] if probes else None,
        tuple(stopped),
        palette,
    )


def _audit(panel: Panel, scored: Sequence[Score]) -> Audit | None:
    sources = [str(m["dataset"]["audit_source"]) for m in panel.manifests if m.get("dataset", {}).get("audit_source")]
    if not sources:
        return None
    asked = panel.rows.drop_duplicates("question_id")
    audit = Audit(sources[0], int(asked["audit_flag"].notna().sum()), len(asked), ())
    above = [
        s.arm for s in scored if s.group == ALL and isinstance(s.value, Estimate) and s.value.value > audit.ceiling
    ]
    return Audit(audit.source, audit.flagged, audit.questions, tuple(dict.fromkeys(above)))
