"""The figures of the calibration page: what the rules did in simulation."""

from collections.abc import Sequence

from markupsafe import Markup

from akm_harbor.canary.simulate.calibration import RATES, Measured
from akm_harbor.report.figures import BASELINE, LINE, SERIES, SOFT, TREATMENT, figure, to_svg

_NOISE = {"own": "own probability", "independent": "independent noise", "carried": "carry-over"}


def _pick(measured: Sequence[Measured], **wanted: object) -> list[Measured]:
    found = [one for one in measured if all(getattr(one, name) == value for name, value in wanted.items())]
    return sorted(found, key=lambda one: one.recall)


def false_alarms(measured: Sequence[Measured], noise: str) -> Markup | None:
    """False alarms a cycle by recall level, with a fifth to either side of the rates asked for; None if unmeasured."""
    seen = [100 * (one.value or 0) for one in measured if one.what == "false-alarm" and one.noise == noise]
    if not seen:
        return None
    with figure(5.6, 3.1) as (drawn, axes):
        for rate, colour, marker in zip(RATES, SERIES, "osD", strict=False):
            found = _pick(measured, what="false-alarm", rule="calibrated", noise=noise, rate=rate)
            axes.fill_between([0.58, 0.97], 80 * rate, 120 * rate, color=colour, alpha=0.13, lw=0)
            axes.plot(
                [one.recall for one in found], [100 * (one.value or 0) for one in found], marker=marker, ms=5, lw=1.3,
                color=colour, label=f"calibrated, {rate:.0%} asked",
            )  # fmt: skip
        found = _pick(measured, what="false-alarm", rule="as-designed", noise=noise)
        axes.plot(
            [one.recall for one in found], [100 * (one.value or 0) for one in found], "x--", color=SOFT, lw=1.2, ms=6,
            label="as designed",
        )  # fmt: skip
        axes.set_xlim(0.58, 0.97)
        axes.set_ylim(0, max(8.5, 1.35 * max(seen)))
        axes.set_xlabel("recall of the healthy store")
        axes.set_ylabel("cycles with a false alarm, %")
        axes.grid(axis="y", color=LINE, lw=0.6)
        axes.legend(fontsize=8, ncols=2, loc="upper center")
        return to_svg(drawn, f"False alarms, {_NOISE[noise]}", "bands: a fifth to either side of the rate asked for")


def power(measured: Sequence[Measured], noise: str) -> Markup:
    """Share of true drops of 0.15 seen by the third cycle, by how the drop came about."""
    with figure(5.6, 3.1) as (drawn, axes):
        axes.axhline(85, color=SOFT, lw=0.9, ls=(0, (4, 3)))
        for rule, colour in (("calibrated", TREATMENT), ("as-designed", BASELINE)):
            for drop, style, marker in (("lost", "-", "o"), ("scale", "--", "s"), ("shift", ":", "^")):
                found = _pick(measured, what="power", rule=rule, noise=noise, drop=drop)
                axes.plot(
                    [one.recall for one in found], [100 * (one.value or 0) for one in found], style, marker=marker,
                    ms=4.5, lw=1.3, color=colour, label=f"{rule}, {drop}",
                )  # fmt: skip
        axes.set_xlim(0.58, 0.97)
        axes.set_ylim(40, 102)
        axes.set_xlabel("recall of the healthy store")
        axes.set_ylabel("seen by the third cycle, %")
        axes.grid(axis="y", color=LINE, lw=0.6)
        axes.legend(fontsize=8, ncols=2, loc="lower right")
        return to_svg(drawn, f"Power, {_NOISE[noise]}", "drop of 0.15 in true recall, 2 % false alarms asked for")
