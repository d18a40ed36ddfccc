"""From canary tables to what people are shown: one result a store, judged by all three rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from akm_harbor.canary.alerts import evaluate
from akm_harbor.canary.alerts.model import DEFAULTS, Alert, Evaluated, Rule, Settings
from akm_harbor.canary.alerts.rows import Cycle, from_row
from akm_harbor.canary.columns import CYCLES, QUERIES, RANKS
from akm_harbor.canary.explain import NEXT, Lost, RankIndex
from akm_harbor.canary.sources import Gathered
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.columns import Table
from akm_harbor.tables.problems import Problems

type Row = Mapping[str, Any]
type _Tables = tuple[Sequence[Row], Sequence[Row], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One alert with what stands behind it.

    Attributes:
        position: of the cycle in the store.
        ts, run_id: the cycle.
        rule: which rule raised it.
        alert: what it says.
        lost: the canaries behind it.
        next: what to look at next.
    """

    position: int
    ts: datetime
    run_id: str
    rule: Rule
    alert: Alert
    lost: tuple[Lost, ...]
    next: str


@dataclass(frozen=True, slots=True)
class StoreResult:
    """One store.

    Attributes:
        label: the store.
        rows: its `canary_cycles` rows, oldest first.
        cycles: the same, as the rules saw them.
        queries: its `canary_queries` rows.
        ranks: its `canary_ranks` rows, oldest first.
        judged: every rule over the cycles.
        status: `unknown`, `pass` or `warn`, of the newest cycle by the chosen rule.
        confidence: `high`, `medium` or `low`.
        message: the status in one sentence, with the numbers.
        findings: the chosen rule's alerts, newest cycle first.
    """

    label: str
    rows: tuple[Row, ...]
    cycles: tuple[Cycle, ...]
    queries: tuple[Row, ...]
    ranks: tuple[Row, ...]
    judged: Mapping[Rule, Evaluated]
    status: str
    confidence: str
    message: str
    findings: tuple[Finding, ...]

    @property
    def newest(self) -> Row:
        """The newest cycle's row."""
        return self.rows[-1]

    @property
    def active_set(self) -> str:
        """The set of the newest cycle."""
        return str(self.newest["canary_set_id"])


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """All stores.

    Attributes:
        stores: by label.
        rule, settings: what the status goes by.
        problems: what could not be read.
        sources: what was read.
    """

    stores: tuple[StoreResult, ...]
    rule: Rule
    settings: Settings
    problems: Problems
    sources: tuple[str, ...]

    @property
    def status(self) -> str:
        """The worst of the stores: warn before unknown before pass."""
        found = {store.status for store in self.stores}
        return next(status for status in ("warn", "unknown", "pass") if status in found)


def analyse(found: Gathered, rule: Rule = Rule.CALIBRATED, settings: Settings = DEFAULTS) -> CanaryResult:
    """Judge every store.

    Raises:
        AkmHarborError: there is not one cycle.
    """
    cycles, queries, ranks = (_whole(table, found.rows[table.name]) for table in (CYCLES, QUERIES, RANKS))
    names = sorted({row["store"] for row in cycles})
    if not names:
        reasons = "; ".join(f"{problem.detail}" for problem in found.problems) or "no cycle was recorded"
        raise AkmHarborError(
            f"there is no cycle to look at: {reasons}",
            path=", ".join(found.sources) or None,
            hint="`akm-harbor canary mint` and `canary snapshot` start a history of a store's index.",
        )
    for row in cycles:
        if row["ts"] is None:
            found.problems.add(row["store"], "cycle-without-time", f"run {row['run_id']}", "left out: it has no place")
    cycles = [row for row in cycles if row["ts"] is not None]
    stores = tuple(
        _store(name, (_of(cycles, name), _of(queries, name), _of(ranks, name)), rule, settings) for name in names
    )
    return CanaryResult(stores, rule, settings, found.problems, tuple(found.sources))


def _whole(table: Table, rows: Sequence[Row]) -> list[Row]:
    """Rows with every declared column: what a source does not have is None, as in a dataset."""
    names = table.names
    return [row if len(row) == len(names) else {name: row.get(name) for name in names} for row in rows]


def _of(rows: Sequence[Row], store: str) -> list[Row]:
    return [row for row in rows if row["store"] == store]


def _store(label: str, tables: _Tables, rule: Rule, settings: Settings) -> StoreResult:
    rows, queries, ranks = tables
    ordered = sorted(rows, key=lambda row: (row["ts"], row["id"] or 0))
    cycles = [from_row(row) for row in ordered]
    judged = {each: evaluate(cycles, each, settings) for each in Rule}
    ranks = sorted(ranks, key=lambda row: row["ts"])
    status, confidence, message = describe(cycles, judged[rule], settings)
    return StoreResult(
        label=label,
        rows=tuple(ordered),
        cycles=tuple(cycles),
        queries=tuple(queries),
        ranks=tuple(ranks),
        judged=judged,
        status=status,
        confidence=confidence,
        message=message,
        findings=tuple(_findings(ordered, queries, ranks, judged[rule])),
    )


def _findings(
    rows: Sequence[Row], queries: Sequence[Row], ranks: Sequence[Row], judged: Evaluated
) -> Iterator[Finding]:
    index = RankIndex(ranks, queries)
    for position in range(len(rows) - 1, -1, -1):
        row = rows[position]
        for alert in judged.alerts[position]:
            lost = index.lost(alert, row)
            yield Finding(position, row["ts"], row["run_id"], judged.rule, alert, lost, NEXT[alert.kind])


def describe(cycles: Sequence[Cycle], judged: Evaluated, settings: Settings) -> tuple[str, str, str]:
    """Status, confidence and one sentence for the newest cycle."""
    newest = cycles[-1]
    found = f"{newest.hits} of {len(newest.ranks)} canaries found" if newest.ranks else f"recall {newest.recall:.3f}"
    numbers = f"{found}, distinct-content ratio {float(newest.exact_ratio):.3f}, {newest.total} assets"
    alerts = judged.alerts[-1]
    if alerts:
        high = any(alert.kind.is_collapse for alert in alerts)
        said = "; ".join(f"{alert.kind.value}: {alert.detail}" for alert in alerts)
        return "warn", "high" if high else "medium", f"{said}. Now {numbers}."
    history = sum(cycle.set_id == newest.set_id for cycle in cycles[:-1])
    if not judged.judged[-1]:
        return "unknown", "low", f"Too little history to judge ({history} cycles of this set before). Now {numbers}."
    confidence = "high" if history >= settings.window else "medium"
    p = judged.p[-1] if judged.p else None
    chance = "" if p is None else f" (p {p:.2g})"
    said = f"No alert by the {judged.rule.value} rule against {history} cycles before{chance}."
    return "pass", confidence, f"{said} Now {numbers}."
