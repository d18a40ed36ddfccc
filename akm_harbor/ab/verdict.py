"""From a comparison to an answer that CI can act on, by a rule that is stated."""

from dataclasses import replace

from akm_harbor.ab.result import Check, Delivery, Direction, Options, PolicyRow, Verdict
from akm_harbor.errors import UsageError
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result

NO_REGRESSION, REGRESSION, NO_ANSWER = 0, 3, 4


def level_text(level: float) -> str:
    """A coverage with as many digits as it needs, e.g. 95%, 99.9%, 99.9995%."""
    return f"{100 * level:.{6}g}%" if level < 0.99999999 else "almost 100%"


def rule_text(options: Options) -> str:
    """The rule as a sentence.

    Raises:
        UsageError: a margin that the rule cannot use.
    """
    level, margin = level_text(options.level), f"{100 * options.margin:g} points"
    if not 0 <= options.margin < 1:
        raise UsageError("the margin must lie between 0 and 1", hint="A margin of 10 points is `--margin 0.1`.")
    if options.rule == "non-inferior":
        if options.margin == 0:
            raise UsageError("non-inferiority needs a margin above zero", hint="Add e.g. `--margin 0.1`.")
        return f"No regression means: the whole {level} interval of the difference lies above minus {margin}."
    below = f"below minus {margin}" if options.margin else "below zero"
    return f"A regression means: the whole {level} interval of the difference lies {below}."


def verdict(
    options: Options,
    headline: PolicyRow,
    checks: tuple[Check, ...],
    delivery: tuple[Delivery, ...],
    error_shares: tuple[float, float] = (0.0, 0.0),
) -> Verdict:
    """Apply the rule; what makes the question meaningless comes before the answer.

    Args:
        options: the rule and its limits.
        headline: the comparison under the headline's error policy.
        checks: the comparability checks.
        delivery: delivery of both arms.
        error_shares: errors by attempts, of baseline and treatment.
    """
    rule = rule_text(options)
    fatal = [c for c in checks if c.grade == "fatal"]
    if fatal:
        reasons = tuple(f"{c.title}: {c.baseline} against {c.treatment}. {c.detail}" for c in fatal)
        return Verdict(NO_ANSWER, "not-comparable", rule, reasons)
    lacking = [d for d in delivery if d.share is not None and d.share < options.min_delivered]
    if lacking:
        return Verdict(NO_ANSWER, "not-delivered", rule, tuple(_lacking(d, options) for d in lacking))
    gap = abs(error_shares[1] - error_shares[0])
    if gap > options.max_error_imbalance:
        shares = f"{error_shares[0]:.1%} of the baseline's attempts and {error_shares[1]:.1%} of the treatment's"
        allowed = f"{100 * options.max_error_imbalance:g} points"
        reason = f"{shares} had errors: {100 * gap:.1f} points apart, where {allowed} are allowed."
        return Verdict(NO_ANSWER, "unbalanced-errors", rule, (reason,))
    difference = headline.difference
    if isinstance(difference, Estimate):
        found = _by_interval(options, difference, rule)
        direction = direction_of(difference)
        return replace(found, direction=direction, settled=settled(direction, headline.sign_flip, options.level))
    return _without_interval(options, headline, difference, rule)


def direction_of(difference: Result) -> Direction:
    """Which side of zero the whole interval lies on."""
    if isinstance(difference, NotEstimable) or difference.interval is None:
        return "open"
    return "better" if difference.interval.low > 0 else "worse" if difference.interval.high < 0 else "open"


def settled(direction: Direction, exact: Result, level: float) -> bool | None:
    """Whether the interval and the exact test agree on there being a difference; None without a test.

    The interval leans on the tasks' differences being roughly normal, the exact test on nothing but the
    drawing of arms by lot. On a handful of tasks the first can leave out zero while the second cannot
    reach any usual p at all: then nothing is settled, whichever of the two one likes better.
    """
    if isinstance(exact, NotEstimable) or exact.p is None:
        return None
    return (direction != "open") == bool(exact.p <= 1 - level)


def _lacking(delivery: Delivery, options: Options) -> str:
    due = delivery.delivered + delivery.undelivered
    return (
        f"The treatment reached the agent in {delivery.delivered} of {due} attempts of {delivery.arm}; "
        f"at least {options.min_delivered:.0%} are asked for."
    )


def shown_limits(value: float, interval: Interval) -> tuple[float, float]:
    """An interval's ends as shown: a difference of rewards between 0 and 1 cannot lie beyond one."""
    if abs(value) > 1:
        return interval.low, interval.high
    return max(interval.low, -1.0), min(interval.high, 1.0)


def _by_interval(options: Options, difference: Estimate, rule: str) -> Verdict:
    interval = difference.interval
    if interval is None:
        raise AssertionError("the headline has an interval")
    low, high = shown_limits(difference.value, interval)
    text = f"{level_text(options.level)} interval {100 * low:+.1f} to {100 * high:+.1f} points"
    limit = interval.low if options.rule == "non-inferior" else interval.high
    bad = limit <= -options.margin if options.rule == "non-inferior" else limit < -options.margin
    if bad:
        return Verdict(REGRESSION, "regression", rule, (f"The {text} breaks the rule.",))
    outcome = "improvement" if interval.low > 0 else "no-clear-difference"
    return Verdict(NO_REGRESSION, outcome, rule, (f"The {text} keeps the rule.",))


def _without_interval(options: Options, headline: PolicyRow, difference: NotEstimable, rule: str) -> Verdict:
    """Degenerate data: all tied is an answer, the exact test decides a constant difference, the rest is none."""
    if difference.reason == "all-tied":
        return Verdict(NO_REGRESSION, "no-clear-difference", rule, (f"{difference.detail} There is no interval.",))
    exact = headline.sign_flip
    if difference.reason == "constant-difference" and difference.value is not None and isinstance(exact, Estimate):
        low = exact.p is not None and exact.p <= 1 - options.level
        why = f"{difference.detail} The exact sign-flip test decides (p = {exact.p:.3g})."
        if difference.value <= -options.margin and difference.value < 0 and (low or options.rule == "non-inferior"):
            return Verdict(REGRESSION, "regression", rule, (why,), "worse" if low else "open")
        if difference.value > 0 and low:
            return Verdict(NO_REGRESSION, "improvement", rule, (why,), "better")
        return Verdict(NO_REGRESSION, "no-clear-difference", rule, (why,), "worse" if low else "open")
    return Verdict(NO_ANSWER, "undecidable", rule, (difference.detail,))
