"""A self-check for people: lines for a terminal, one offline page, and the numbers as JSON."""

from pathlib import Path

from markupsafe import Markup

import akm_harbor
from akm_harbor.ab.self_check import TOLERATED, Measured, SelfCheck
from akm_harbor.ab.verdict import level_text
from akm_harbor.report.figures import BASELINE, INK, LINE, SOFT, TREATMENT, figure, to_svg
from akm_harbor.report.page import render
from akm_harbor.report.text import DASH, short
from akm_harbor.report.verdict import to_plain, write_json, write_output
from akm_harbor.stats.results import Estimate, Result

TEMPLATES = Path(__file__).resolve().parent / "templates"
GRADES = {
    "holds": ("ok", "keeps its promise"),
    "careful": ("ok", "keeps it, and errs less than half as often as it may"),
    "slightly": ("caveat", "errs more often than it says"),
    "errs": ("fatal", "errs at least twice as often as it says"),
    "silent": ("note", "every draw ties: nothing to err about"),
}
MEANING = {
    0: ("good", "The interval and the exact test keep their promise on these data."),
    3: ("bad", "On these data a method errs at least twice as often as it says."),
    4: ("warn", "Nothing could be measured on these data."),
}


def write_self_check(found: SelfCheck, out: Path) -> tuple[Path, Path]:
    """Write `self_check.html` and `self_check.json`; returns both.

    Raises:
        AkmHarborError: the place cannot be written.
    """
    page, numbers = out / "self_check.html", out / "self_check.json"
    write_output(page, render_self_check(found))
    write_json(numbers, document(found))
    return page, numbers


def document(found: SelfCheck) -> dict[str, object]:
    """The content of `self_check.json`."""
    return {
        "schema": "akm_harbor.ab.self_check/1",
        "package_version": akm_harbor.__version__,
        "exit_code": found.exit_code,
        **to_plain(found),
    }


def rate(result: Result, *, spread: bool = True) -> str:
    """An error rate with its Monte-Carlo interval, in percent."""
    if not isinstance(result, Estimate) or result.interval is None:
        return DASH
    ends = f" ({100 * result.interval.low:.1f}–{100 * result.interval.high:.1f})" if spread else ""  # noqa: RUF001
    return f"{100 * result.value:.1f}%{ends}"


def sentence(found: SelfCheck) -> str:
    """The outcome in one sentence."""
    slight = [c.title for c in found.checks if isinstance(c.result, Measured) and c.result.grade == "slightly"]
    if found.exit_code == 0 and slight:
        return (
            "The exact test and the interval err about as often as they say; slightly more often in: "
            f"{', '.join(slight)}."
        )
    return MEANING[found.exit_code][1]


def lines(found: SelfCheck) -> list[str]:
    """The result for a terminal."""
    arms = " and ".join(n for n in (found.baseline, found.treatment) if n)
    promised = level_text(1 - found.options.level)
    out = [
        sentence(found),
        f"{arms}; {found.draws:,} random data sets of each kind, seed {found.seed}; promised: wrong in {promised}.",
    ]
    for check in found.checks:
        result = check.result
        if not isinstance(result, Measured):
            out.append(f"  {check.title}: not possible because: {result.detail}")
            continue
        exact = f", exact test wrong {rate(result.exact_wrong)}" if isinstance(result.exact_wrong, Estimate) else ""
        none = f", no interval in {100 * result.without_interval:.1f}%" if result.without_interval else ""
        out.append(
            f"  {check.title} ({result.n_tasks} tasks): interval wrong {rate(result.interval_wrong)}{exact}"
            f"{none}: {GRADES[result.grade][1]}"
        )
    return out


def render_self_check(found: SelfCheck) -> str:
    """The page as one HTML file that loads nothing."""
    arms = " and ".join(n for n in (found.baseline, found.treatment) if n)
    style = "warn" if any(m.grade == "slightly" for m in found.measured) else MEANING[0][0]
    context = {
        "title": f"Self-check: {arms}",
        "version": akm_harbor.__version__,
        "found": found,
        "arms": arms,
        "style": style if found.exit_code == 0 else MEANING[found.exit_code][0],
        "outcome": sentence(found),
        "promised": level_text(1 - found.options.level),
        "level": level_text(found.options.level),
        "tolerated": level_text(TOLERATED * (1 - found.options.level)),
        "grades": GRADES,
        "rate": rate,
        "drawn": drawing(found) if found.measured else None,
        "measured": [(c, isinstance(c.result, Measured)) for c in found.checks],
    }
    return render("ab_self_check.html.j2", context, TEMPLATES)


def drawing(found: SelfCheck) -> Markup:
    """Measured error rates beside the promised one."""
    alpha = 100 * (1 - found.options.level)
    rows = [(c.title, c.result) for c in found.checks if isinstance(c.result, Measured)]
    with figure(5.6, 1.4 + 0.42 * len(rows)) as (drawn, axes):
        axes.axvspan(0, TOLERATED * alpha, color="#eef1f4", lw=0)
        axes.axvline(alpha, color=SOFT, lw=1)
        reach = 2.2 * alpha
        for y, (_, result) in enumerate(reversed(rows)):
            series = ((result.interval_wrong, "D", TREATMENT, 0.12), (result.exact_wrong, "o", BASELINE, -0.12))
            for measured, mark, colour, lift in series:
                if isinstance(measured, Estimate) and measured.interval is not None:
                    ends = [100 * measured.interval.low, 100 * measured.interval.high]
                    reach = max(reach, 1.1 * ends[1])
                    axes.plot(ends, [y + lift, y + lift], color=colour, lw=1.6)
                    axes.plot(100 * measured.value, y + lift, mark, color=colour, ms=6)
        axes.plot([], [], "D-", color=TREATMENT, ms=6, label="interval excludes the truth")
        axes.plot([], [], "o-", color=BASELINE, ms=6, label="exact test rejects a true null")
        axes.set_yticks(range(len(rows)), [short(title, 34) for title, _ in reversed(rows)])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlim(0, min(reach, 100))
        axes.set_xlabel("draws in which it errs, percent (line: promised)", color=INK)
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        drawn.legend(loc="outside upper right", fontsize=9, borderaxespad=0.2)
        said = "; ".join(f"{title}: interval {rate(m.interval_wrong)}, test {rate(m.exact_wrong)}" for title, m in rows)
        return to_svg(drawn, "Measured error rates", said)
