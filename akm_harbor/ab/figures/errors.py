"""Figure of error causes, arm against arm."""

from markupsafe import Markup

from akm_harbor.ab.result import AbResult
from akm_harbor.report.figures import BASELINE, INK, LINE, TREATMENT, figure, to_svg
from akm_harbor.report.text import short


def error_causes(r: AbResult) -> Markup | None:
    """Share of each arm's attempts by error cause, back to back; None without an error.

    Shares, because arms may have run unequally often; the counts stand beside the bars.
    """
    rows = [c for c in r.errors.causes if c.baseline + c.treatment]
    totals = r.baseline.n_attempts, r.treatment.n_attempts
    if not rows or not all(totals):
        return None
    shares = [(100 * c.baseline / totals[0], 100 * c.treatment / totals[1]) for c in rows]
    reach = 1.35 * max(max(pair) for pair in shares)
    with figure(5.6, 0.95 + 0.36 * len(rows)) as (drawn, axes):
        axes.axvline(0, color=INK, lw=1)
        for y, (row, (left, right)) in enumerate(zip(rows, shares, strict=True)):
            axes.barh(y, -left, color=BASELINE, hatch="//", edgecolor="white", height=0.6)
            axes.barh(y, right, color=TREATMENT, height=0.6)
            gap = 0.015 * reach
            axes.text(-left - gap, y, f"{row.baseline}", ha="right", va="center", fontsize=9)
            axes.text(right + gap, y, f"{row.treatment}", ha="left", va="center", fontsize=9)
        axes.set_yticks(range(len(rows)), [short(row.cause, 26) for row in rows])
        axes.set_xlim(-reach, reach)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.xaxis.set_major_formatter(lambda x, _: f"{abs(x):g}")
        axes.set_xlabel("share of the arm's attempts, %")
        axes.text(0.49, 1.02, f"◂ {short(r.baseline.name, 22)}", transform=axes.transAxes, ha="right", color=BASELINE)
        axes.text(0.51, 1.02, f"{short(r.treatment.name, 22)} ▸", transform=axes.transAxes, ha="left", color=TREATMENT)
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        said = "; ".join(f"{c.cause}: {c.baseline} of {totals[0]} and {c.treatment} of {totals[1]}" for c in rows)
        return to_svg(drawn, "Errors by cause and arm", said)
