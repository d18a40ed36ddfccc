"""The result in sentences that a stranger understands."""

from akm_harbor.ab.result import AbResult, PolicyRow
from akm_harbor.ab.verdict import level_text, shown_limits
from akm_harbor.report.text import DASH, MINUS
from akm_harbor.stats.results import Estimate, NotEstimable, Result

NO_ANSWER = {
    "not-comparable": "These arms cannot be compared as they stand.",
    "not-delivered": "The treatment did not reach the agent in enough attempts.",
    "unbalanced-errors": "Errors differ too much between the arms to compare them.",
    "undecidable": "Too little data to say anything.",
}
"""Verdict outcome -> what the banner says where there is no answer."""
_SETTLED = {
    "better": "The treatment does better.",
    "worse": "The treatment does worse.",
    "open": "No clear difference.",
}


def percent(share: float | None) -> str:
    """A share as a percentage."""
    return DASH if share is None else f"{100 * share:.1f}%"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, signed, with a true minus."""
    if difference is None:
        return DASH
    text = f"{100 * difference:+.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text.replace("-", MINUS)


def span(result: Result) -> str:
    """An interval in points, or why there is none."""
    if isinstance(result, NotEstimable):
        return "not estimable"
    if result.interval is None:
        return DASH
    low, high = shown_limits(result.value, result.interval)
    return f"{points(low)} to {points(high)}"


def p_value(result: Result) -> str:
    """A p value, or why there is none."""
    if isinstance(result, NotEstimable) or result.p is None:
        return "not estimable"
    return p_text(result.p)


def p_text(p: float) -> str:
    """A p value with as many digits as it deserves, never 0."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def precision(r: AbResult) -> str:
    """What the run could see, to be read before the difference."""
    mde, tasks = r.planning.mde, r.headline.n_tasks
    if isinstance(mde, NotEstimable):
        return f"With {plural(tasks, 'shared task')} this run cannot say how small a difference it would have seen."
    attempts = f"{r.headline.n_baseline} and {r.headline.n_treatment} attempts"
    start = f"Before the result: on {plural(tasks, 'shared task')} with {attempts}, "
    own = isinstance(r.headline.difference, Estimate)
    planned = "" if own else " (from planning values: this run has no spread of its own)"
    if mde.value >= 1:
        return f"{start}even the largest possible difference could have been missed: this run is too small."
    return (
        f"{start}a true difference of about "
        f"{100 * mde.value:.0f} points or more would have been noticed four times out of five; "
        f"a smaller one would often have been missed{planned}."
    )


def headline(r: AbResult) -> str:
    """The result itself."""
    row = r.headline
    if row.baseline is None or row.treatment is None:
        return f"Under the rule “{row.title}”, no task has a counting attempt in both arms."
    start = (
        f"{r.treatment.name} solved {percent(row.treatment)} and {r.baseline.name} {percent(row.baseline)} "
        f"on average over {plural(row.n_tasks, 'shared task')}: a difference of {points(row.difference.value)} points"
    )
    level = level_text(r.options.level)
    if isinstance(row.difference, Estimate):
        tail = f" ({level} interval {span(row.difference)}; exact sign-flip p = {p_value(row.sign_flip)})."
        return (start + tail).replace("p = <", "p <")
    exact = f" Exact sign-flip p = {p_value(row.sign_flip)}." if isinstance(row.sign_flip, Estimate) else ""
    return f"{start}. There is no interval: {row.difference.detail[0].lower()}{row.difference.detail[1:]}{exact}"


def meaning(r: AbResult) -> str:
    """What the interval does and does not say."""
    difference = r.headline.difference
    if isinstance(difference, NotEstimable) or difference.interval is None:
        return "Without an interval this is a description of these attempts, not evidence about other tasks."
    low, high = shown_limits(difference.value, difference.interval)
    if low > 0 or high < 0:
        effect = "gain" if low > 0 else "loss"
        between = f"{points(low)} and {points(high)} points"
        return f"For tasks like these, the treatment's {effect} plausibly lies between {between}."
    return (
        f"For tasks like these, anything from {points(low)} to {points(high)} points is compatible with the data, "
        "no difference included. That is not the same as showing that there is none."
    )


def banner(r: AbResult) -> tuple[str, str]:
    """The banner's style and its first words: never surer than the interval and the exact test together."""
    v = r.verdict
    if v.outcome in NO_ANSWER:
        return "warn", NO_ANSWER[v.outcome]
    said = _SETTLED[v.direction] if v.settled is not False else _unsettled(r)
    style = "good" if v.direction == "better" and v.settled is not False else "plain"
    return "bad" if v.exit_code else style, f"{said} {against_margin(r)}".strip()


def _unsettled(r: AbResult) -> str:
    """The two disagree: which says what."""
    p = f"(p = {p_value(r.headline.sign_flip)})".replace("= <", "<")
    if r.verdict.direction != "open":
        return (
            f"Probably {r.verdict.direction}, not settled: the interval leaves out zero, "
            f"the exact test does not rule out chance {p}."
        )
    side = "better" if (r.headline.difference.value or 0.0) > 0 else "worse"
    return f"Perhaps {side}, not settled: the exact test finds a difference {p}, the interval does not leave out zero."


def against_margin(r: AbResult) -> str:
    """What the rule makes of it, where the rule is about more than zero."""
    margin = f"A loss of more than {100 * r.options.margin:g} points"
    if r.options.rule == "non-inferior":
        return f"{margin} is {'not ' if r.verdict.exit_code else ''}ruled out."
    if r.options.margin and r.verdict.direction == "worse":
        return f"{margin} is {'shown' if r.verdict.exit_code else 'not shown'}."
    return ""


def disagreement(r: AbResult) -> str:
    """Why the interval and the exact test can disagree, and what would settle it; empty where they do not."""
    exact = r.headline.sign_flip
    if r.verdict.settled is not False or isinstance(exact, NotEstimable):
        return ""
    told = (
        "The interval trusts the tasks' differences to be roughly normal; the exact test trusts nothing but the signs. "
        "This page calls a difference settled only where both agree."
    )
    return " ".join([told, *exact.notes, "More tasks settle it; more attempts do so only in part."])


def scripted_sentence(r: AbResult) -> str:
    """What a page of a demo must say of itself, wherever it is forwarded to; empty for a real model."""
    models = {*r.baseline.models, *r.treatment.models}
    if not models or not all(model.startswith("scripted/") for model in models):
        return ""
    return "Played by a scripted model: its policy declares the outcome. This shows the instrument, not akm."


def delivery_sentence(r: AbResult) -> str:
    """Whether the treatment reached the agent."""
    treated = r.delivery[1]
    due = treated.delivered + treated.undelivered
    if not due:
        return (
            f"Delivery: nothing was recorded that tells whether the treatment reached the agent in {r.treatment.name}; "
            "the difference is between the arms as they were run."
        )
    text = f"Delivery: the treatment reached the agent in {treated.delivered} of {due} attempts of {r.treatment.name}"
    if treated.undelivered:
        why = ", ".join(f"{code} ({n})" for code, n in list(treated.reasons.items())[:4])
        text += f"; in {treated.undelivered} it did not" + (f": {why}" if why else "")
    if treated.unknown:
        text += f"; for {treated.unknown} nothing was recorded"
    return text + "."


def comparability_sentence(r: AbResult) -> str:
    """Whether the arms may be compared."""
    graded = {g: [c.title for c in r.checks if c.grade == g] for g in ("fatal", "caveat")}
    if graded["fatal"]:
        return f"Comparability: the arms differ in what they must share: {', '.join(graded['fatal'])}."
    if graded["caveat"]:
        return f"Comparability: nothing fatal; to be kept in mind: {', '.join(graded['caveat'])}."
    unknown = sum(not c.compared for c in r.checks)
    rest = f" ({plural(unknown, 'setting')} not recorded)" if unknown else ""
    return f"Comparability: no recorded setting differs in a way that matters{rest}."


def _direction(row: PolicyRow) -> str:
    difference = row.difference
    if isinstance(difference, NotEstimable) or difference.interval is None:
        return "open"
    return "better" if difference.interval.low > 0 else "worse" if difference.interval.high < 0 else "open"


def sensitivity_sentence(r: AbResult) -> str:
    """Whether the conclusion hangs on how errors are counted."""
    if not r.errors.baseline + r.errors.treatment:
        return "Errors: none in either arm, so every way of counting them gives the same result."
    counts = f"{r.errors.baseline} in {r.baseline.name}, {r.errors.treatment} in {r.treatment.name}"
    directions = {_direction(row) for row in r.policies}
    values = [row.difference.value for row in r.policies if row.difference.value is not None]
    reach = f"from {points(min(values))} to {points(max(values))} points" if values else "not at all"
    if len(directions) == 1:
        text = f"Errors: {counts}. However they are counted, the conclusion is the same; the difference runs {reach}."
    else:
        text = f"Errors: {counts}. The conclusion depends on how they are counted: the difference runs {reach}."
    balance = r.errors.balance
    if isinstance(balance, Estimate) and balance.p is not None and balance.p < 0.05:
        text += f" They are not balanced between the arms (Fisher p = {p_value(balance)}), which is itself a finding."
    return text.replace("p = <", "p <")
