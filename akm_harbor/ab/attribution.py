"""Which asset was in play in which attempt, and how attempts went with and without it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.ab.funnel import compare_scores
from akm_harbor.ab.use import TrialUse, rows_by_trial
from akm_harbor.stats.binomial import proportion
from akm_harbor.stats.results import NotEstimable, Result
from akm_harbor.trials.akm_calls import bare_ref
from akm_harbor.trials.columns import AKM_USAGE, PLUGIN_EVENTS

CAVEAT = (
    "Descriptive: the agent chose what to open, attempts of one task resemble each other, and with many assets some "
    "stand out by chance. An asset earns nothing by having been opened in attempts that succeeded anyway."
)

HOW = ("opened", "returned", "recalled")
"""How an asset was in play: opened by the model, among what a look-up brought, or fetched by the plugin itself."""

_RECALLS = frozenset({"prompt_recall"})


@dataclass(frozen=True, slots=True)
class AssetUse:
    """One asset in one attempt.

    Attributes:
        asset: its ref without the bundle.
        how: the strongest of `HOW` that holds.
        gold: it is the asset that answers the task.
        steps: ATIF steps in which it was opened or came back.
        ledgers: which ledgers name it: tool_calls, akm_usage, plugin_events.
        score: the attempt's.
    """

    root: str | None
    trial_path: str
    arm: str
    task: str
    asset: str
    how: str
    gold: bool
    steps: tuple[int, ...]
    ledgers: tuple[str, ...]
    score: float | None


@dataclass(frozen=True, slots=True)
class AssetRow:
    """One asset in one arm: attempts that opened it, beside the others on the same tasks.

    Attributes:
        gold_for: tasks that it answers.
        n_tasks: tasks on which it was in play in any way.
        n_opened: attempts that opened it; n_returned, n_recalled: the weaker ways.
        with_rate: success of scored attempts that opened it, Wilson.
        without_rate: success of the other scored attempts of the same arm on the tasks on which it was opened.
        difference: with minus without, Newcombe.
    """

    arm: str
    asset: str
    gold_for: tuple[str, ...]
    n_tasks: int
    n_opened: int
    n_returned: int
    n_recalled: int
    n_with: int
    with_rate: Result
    n_without: int
    without_rate: Result
    difference: Result


def asset_uses(dataset: Path, trials: Sequence[TrialUse]) -> tuple[AssetUse, ...]:
    """Every asset that was in play in an attempt, from all ledgers that name one.

    Args:
        dataset: a dataset's folder.
        trials: from `read_uses`.
    """
    keys = [t.key for t in trials]
    usage = rows_by_trial(dataset, AKM_USAGE, keys, ["root", "trial_path", "event_type", "entry_ref", "automatic"])
    events = rows_by_trial(dataset, PLUGIN_EVENTS, keys, ["root", "trial_path", "event", "refs"])
    found = []
    for trial in trials:
        ways = _by_model(trial)
        for row in usage.get(trial.key, []):
            how = "opened" if row["event_type"] == "show" else "returned"
            if row["entry_ref"] and row["event_type"] in {"show", "search", "curate"}:
                automatic = row["automatic"] is True or (row["automatic"] is None and how == "returned")
                _note(ways, bare_ref(row["entry_ref"]), "recalled" if automatic else how, "akm_usage")
        for row in events.get(trial.key, []):
            for ref in row["refs"] or ():
                how = "recalled" if row["event"] in _RECALLS else "returned"
                _note(ways, bare_ref(ref), how, "plugin_events")
        for asset, way in sorted(ways.items()):
            how = next(h for h in HOW if h in way.how)
            found.append(
                AssetUse(
                    trial.root,
                    trial.trial_path,
                    trial.arm,
                    trial.task,
                    asset,
                    how,
                    asset in trial.gold,
                    tuple(sorted(way.steps)),
                    tuple(sorted(way.ledgers)),
                    trial.score,
                )
            )
    return tuple(found)


@dataclass(slots=True)
class _Way:
    how: set[str]
    steps: set[int]
    ledgers: set[str]


def _note(ways: dict[str, _Way], asset: str, how: str, ledger: str, step: int | None = None) -> None:
    way = ways.setdefault(asset, _Way(set(), set(), set()))
    way.how.add(how)
    way.ledgers.add(ledger)
    if step is not None:
        way.steps.add(step)


def _by_model(trial: TrialUse) -> dict[str, _Way]:
    """What the model's own calls brought."""
    ways: dict[str, _Way] = {}
    for use in trial.looks:
        if use.answered:
            for asset in use.refs:
                _note(ways, asset, "opened" if use.kind == "open" else "returned", "tool_calls", use.step)
    return ways


def asset_rows(trials: Sequence[TrialUse], uses: Iterable[AssetUse], level: float) -> tuple[AssetRow, ...]:
    """Success with and without each asset, arm by arm, the most opened first."""
    by_asset: dict[tuple[str, str], list[AssetUse]] = {}
    for use in uses:
        by_asset.setdefault((use.arm, use.asset), []).append(use)
    order = {arm: place for place, arm in enumerate(dict.fromkeys(t.arm for t in trials))}
    rows = [_asset_row(arm, asset, trials, mine, level) for (arm, asset), mine in by_asset.items()]
    return tuple(sorted(rows, key=lambda r: (order[r.arm], -r.n_opened, -r.n_returned, r.asset)))


def _asset_row(arm: str, asset: str, trials: Sequence[TrialUse], mine: list[AssetUse], level: float) -> AssetRow:
    opened = {(u.root, u.trial_path) for u in mine if u.how == "opened"}
    tasks = {u.task for u in mine if u.how == "opened"}
    scored = [t for t in trials if t.arm == arm and t.task in tasks and t.score is not None and t.called is not None]
    held = [t.score for t in scored if t.key in opened and t.score is not None]
    rest = [t.score for t in scored if t.key not in opened and t.score is not None]
    counts = {how: sum(u.how == how for u in mine) for how in HOW}
    return AssetRow(
        arm,
        asset,
        tuple(sorted({t.task for t in trials if asset in t.gold})),
        len({u.task for u in mine}),
        counts["opened"],
        counts["returned"],
        counts["recalled"],
        len(held),
        _rate(held, level),
        len(rest),
        _rate(rest, level),
        compare_scores(rest, held, level),
    )


def _rate(scores: list[float], level: float) -> Result:
    if set(scores) <= {0.0, 1.0}:
        return proportion(sum(scores), len(scores), "wilson", level)
    value = sum(scores) / len(scores)
    return NotEstimable("not-binary", "Some scores are neither 0 nor 1.", "wilson", "mean score", len(scores), value)
