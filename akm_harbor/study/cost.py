"""What a study will cost, before it starts, and what it did cost, beside that."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.study.declaration import Price, Study
from akm_harbor.study.prices import price_of
from akm_harbor.study.render import count_tasks
from akm_harbor.tables import read_frame
from akm_harbor.trials.columns import TRIALS

_Z95 = 1.96
_COLUMNS = [
    "arm",
    "task_name",
    "model_name",
    "status",
    "n_input_tokens",
    "n_cache_tokens",
    "n_output_tokens",
    "cost_usd",
]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one trial, on average.

    Attributes:
        n_input: prompt tokens, the cached ones among them.
        dollars: recorded cost of a trial; None where the pilot was another model's, or recorded none.
        spread: relative standard error of the mean, from the spread between the pilot's tasks; None if unknown.
        n_trials: trials behind it; 0 when given by hand.
    """

    n_input: float
    n_cache: float
    n_output: float
    dollars: float | None = None
    spread: float | None = None
    n_trials: int = 0


@dataclass(frozen=True, slots=True)
class ArmCost:
    """One arm's part: trials, usage of one, dollars of all."""

    arm: str
    n_trials: int
    usage: Usage
    dollars: float
    judge_dollars: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a study will cost.

    Attributes:
        total: US dollars, judge included.
        low: lower end of a rough 95% range; None where nothing tells the spread.
        notes: what a careful reader must know.
    """

    arms: tuple[ArmCost, ...]
    total: float
    low: float | None
    high: float | None
    price: Price
    source: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Actual:
    """What a study's trials did cost.

    Attributes:
        trials: attempts with known tokens, by arm.
        unknown: attempts without; what they cost is in no number.
        dollars: recorded where every attempt has a recorded cost, else priced from tokens; judge included.
        recorded: which of the two.
    """

    trials: Mapping[str, int]
    unknown: int
    dollars: float
    recorded: bool


def parse_tokens(text: str) -> Usage:
    """Tokens of one trial, given as `INPUT,CACHED,OUTPUT`.

    Raises:
        UsageError: not three numbers, or more cached than input.
    """
    try:
        given, cached, written = (float(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        raise UsageError(f"tokens are written INPUT,CACHED,OUTPUT, not {text!r}") from None
    if not (0 <= cached <= given and written >= 0 and math.isfinite(given + written)):
        raise UsageError(
            f"tokens make no sense: {text!r}", hint="INPUT includes the cached ones, as in Harbor's results."
        )
    return Usage(given, cached, written)


def usage_of_pilot(dataset: Path, arms: Iterable[str], model: str) -> tuple[dict[str, Usage], list[str]]:
    """Tokens of one trial by arm, from a pilot's dataset.

    Args:
        dataset: a dataset made by `akm-harbor collect`.
        arms: the arms to price; one that the pilot lacks gets the average of its other arms.
        model: the study's model; recorded costs count only if it was the pilot's too.

    Returns:
        Usage by arm, and what a reader must know.

    Raises:
        AkmHarborError: not a dataset, or no trial in it has known tokens.
    """
    trials = _with_tokens(read_frame(dataset, TRIALS, _COLUMNS))
    if trials.empty:
        raise AkmHarborError(
            "no trial in it has known tokens", path=dataset, hint="Give them: --tokens INPUT,CACHED,OUTPUT."
        )
    notes = []
    same_model = set(trials["model_name"].dropna()) == {model}
    if not same_model:
        names = ", ".join(sorted(set(trials["model_name"].dropna())))
        notes.append(f"the pilot ran {names}: another model uses other amounts of tokens")
    found = {}
    for arm in arms:
        rows = trials[trials["arm"] == arm]
        if rows.empty:
            rows = trials
            notes.append(f"the pilot has no arm {arm}: priced like the average of its arms")
        found[arm] = _usage(rows, same_model=same_model)
    return found, notes


def _with_tokens(trials: pd.DataFrame) -> pd.DataFrame:
    known = trials["n_input_tokens"].notna() & trials["n_output_tokens"].notna()
    return trials[known & ~trials["status"].isin(["superseded", "install_only", "cancelled"])]


def _usage(rows: pd.DataFrame, *, same_model: bool) -> Usage:
    weight = rows["n_input_tokens"].astype(float) + rows["n_output_tokens"].astype(float)
    by_task = weight.groupby(rows["task_name"]).mean()
    mean = float(weight.mean())
    spread = float(by_task.std(ddof=1) / math.sqrt(len(by_task)) / mean) if len(by_task) > 1 and mean > 0 else None
    cost = rows["cost_usd"]
    return Usage(
        float(rows["n_input_tokens"].mean()),
        float(rows["n_cache_tokens"].fillna(0).mean()),
        float(rows["n_output_tokens"].mean()),
        float(cost.mean()) if same_model and cost.notna().all() and float(cost.sum()) > 0 else None,
        spread,
        len(rows),
    )


def predict(
    study: Study,
    usage: Mapping[str, Usage],
    source: str,
    *,
    price_file: Path | None = None,
    notes: Iterable[str] = (),
) -> Prediction:
    """Price a study.

    Args:
        study: the study.
        usage: tokens of one trial, by arm.
        source: where they come from, for the reader.
        price_file: prices that go before the study's and the table's.
        notes: what a reader must know of the usage.

    Raises:
        UsageError: no price for a model, or nothing tells how many tasks there are.
    """
    n_tasks = count_tasks(study)
    if n_tasks is None:
        raise UsageError(
            f"{study.name}: nothing tells how many tasks {study.dataset} has", hint="Declare n_tasks in its study."
        )
    price = price_of(study.model, study.price, price_file)
    judge_each = 0.0
    if study.judge is not None:
        judge = study.judge
        paid = price_of(judge.model, None, price_file)
        judge_each = judge.calls_per_trial * paid.dollars(judge.input_tokens, 0, judge.output_tokens)
    n_trials = n_tasks * study.attempts
    arms = []
    squares = 0.0
    for arm in study.arms:
        one = usage[arm.name]
        each = one.dollars if one.dollars is not None else price.dollars(one.n_input, one.n_cache, one.n_output)
        arms.append(ArmCost(arm.name, n_trials, one, n_trials * each, n_trials * judge_each))
        squares += (n_trials * each * (one.spread or 0.0)) ** 2
    total = sum(arm.dollars + arm.judge_dollars for arm in arms)
    reach = _Z95 * math.sqrt(squares) if all(arm.usage.spread is not None for arm in arms) else None
    low, high = (None, None) if reach is None else (max(total - reach, 0.0), total + reach)
    return Prediction(tuple(arms), total, low, high, price, source, tuple(notes))


def actual_cost(study: Study, dataset: Path, price_file: Path | None = None) -> Actual:
    """What the trials of a dataset cost, by the same prices.

    Raises:
        UsageError: no price is known and costs were not recorded.
    """
    every = read_frame(dataset, TRIALS, _COLUMNS)
    every = every[~every["status"].isin(["superseded", "install_only"])]
    trials = _with_tokens(every)
    judge = 0.0
    if study.judge is not None:
        paid = price_of(study.judge.model, None, price_file)
        each = study.judge.calls_per_trial * paid.dollars(study.judge.input_tokens, 0, study.judge.output_tokens)
        judge = each * len(trials)
    counts = {str(arm): int(n) for arm, n in trials["arm"].value_counts().items()}
    recorded = bool(len(trials)) and bool(trials["cost_usd"].notna().all()) and float(trials["cost_usd"].sum()) > 0
    if recorded:
        dollars = float(trials["cost_usd"].sum())
    else:
        price = price_of(study.model, study.price, price_file)
        sums = trials[["n_input_tokens", "n_cache_tokens", "n_output_tokens"]].fillna(0).sum()
        dollars = price.dollars(*(float(value) for value in sums))
    return Actual(counts, len(every) - len(trials), dollars + judge, recorded)


def require_below(prediction: Prediction, cap: float) -> None:
    """Refuse a study that is predicted to cost more than the cap.

    Raises:
        AkmHarborError: it is; the message has both numbers.
    """
    if prediction.total > cap:
        raise AkmHarborError(
            f"predicted to cost {dollars(prediction.total)}, and the cap is {dollars(cap)}: nothing was run",
            hint="Fewer attempts or tasks cost less; `akm-harbor plan --budget` tells what a budget can see.",
        )


def dollars(amount: float) -> str:
    """Dollars with the digits they deserve."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def describe(prediction: Prediction) -> list[str]:
    """A prediction as lines for a terminal."""
    price = prediction.price
    lines = [
        f"price: ${price.input:g} input, ${price.cache:g} cached, ${price.output:g} output per million tokens",
        f"  from: {price.source}",
        f"usage: {prediction.source}",
    ]
    for arm in prediction.arms:
        one = arm.usage
        tokens = f"{one.n_input:,.0f} input ({one.n_cache:,.0f} cached), {one.n_output:,.0f} output tokens a trial"
        judge = f" + judge {dollars(arm.judge_dollars)}" if arm.judge_dollars else ""
        lines.append(f"  {arm.arm}: {arm.n_trials} trials, {tokens}: {dollars(arm.dollars)}{judge}")
    ends = (
        ""
        if prediction.low is None or prediction.high is None
        else (f", roughly {dollars(prediction.low)} to {dollars(prediction.high)}")
    )
    lines.append(f"predicted: {dollars(prediction.total)}{ends}")
    return lines + [f"note: {note}" for note in prediction.notes]


def compare(predicted: float | None, actual: Actual) -> str:
    """Predicted against actual cost, one line.

    Args:
        predicted: total in dollars; None where nothing was predicted.
        actual: what the trials cost.
    """
    how = "recorded by the agent" if actual.recorded else "priced from tokens"
    unknown = f"; {actual.unknown} trials without known tokens are in no number" if actual.unknown else ""
    if predicted is None:
        return f"cost: {dollars(actual.dollars)}, {how}, not predicted{unknown}"
    off = f" ({actual.dollars / predicted - 1:+.1%})" if predicted > 0 else ""
    return f"cost: predicted {dollars(predicted)}, actual {dollars(actual.dollars)}{off}, {how}{unknown}"
