"""The figures of a canary report."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from akm_harbor.canary.alerts.calibrated import recall_limits
from akm_harbor.canary.alerts.model import Kind, Rule
from akm_harbor.canary.alerts.rows import comparable
from akm_harbor.canary.analysis import CanaryResult, StoreResult
from akm_harbor.canary.refs import LEARNING_TYPES, reduced
from akm_harbor.report.figures import BASELINE, INK, LINE, SERIES, SOFT, TREATMENT, figure, to_svg
from akm_harbor.report.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALERT = "#9c2a00"
MOST_COLUMNS = 120
_WIDTH = 7.2


def _dates(axes: "Axes") -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _times(store: StoreResult) -> list[float]:
    from matplotlib.dates import date2num

    days = date2num([row["ts"] for row in store.rows])  # type: ignore[no-untyped-call]
    return [float(day) for day in days]


def _panels(drawn: "Figure", axes: "Axes", heights: Sequence[float]) -> list["Axes"]:
    drawn.delaxes(axes)
    made = drawn.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    return list(np.atleast_1d(made))


def _mark_sets(axes: "Axes", store: StoreResult, *, named: bool = True) -> None:
    """A dashed line where a new set begins: nothing is compared across it."""
    times = _times(store)
    for at, before, after in zip(times[1:], store.rows, store.rows[1:], strict=False):
        if before["canary_set_id"] != after["canary_set_id"]:
            axes.axvline(at, color=SOFT, lw=0.9, ls=(0, (4, 3)))
            if named:
                late = at > times[0] + (times[-1] - times[0]) * 0.7
                axes.annotate(
                    "new set", (at, 1), xycoords=("data", "axes fraction"), ha="right" if late else "left", va="top",
                    fontsize=8, color=SOFT, xytext=(-3 if late else 3, -2), textcoords="offset points",
                )  # fmt: skip


def _by_series(store: StoreResult) -> list[list[int]]:
    return comparable(store.cycles)


def trend(store: StoreResult, result: CanaryResult) -> Markup:
    """Recall, nDCG and MRR with the band below which a cycle would raise an alert."""
    times, rows = _times(store), store.rows
    marker = "o" if len(rows) <= 60 else ""
    together = all(abs((row["mean_recall"] or 0) - (row["mean_ndcg"] or 0)) < 1e-9 for row in rows)
    with figure(_WIDTH, 2.9) as (drawn, axes):
        for number, series in enumerate(_by_series(store)):
            at = [times[i] for i in series]
            limits = recall_limits([store.cycles[i] for i in series], result.settings)
            known = [(t, limit) for t, limit in zip(at, limits, strict=True) if limit is not None]
            if known:
                xs, ys = zip(*known, strict=True)
                axes.fill_between(
                    xs, 0, ys, color="#f6e3da", lw=0, step="mid", label="alert area" if number == 0 else None
                )
            for name, label, colour, style in (
                ("mean_mrr", "MRR", SERIES[2], ":"),
                ("mean_ndcg", "nDCG", SERIES[1], "--"),
                ("mean_recall", "recall", TREATMENT, "-"),
            ):
                if name == "mean_recall" or not together:
                    values = [np.nan if rows[i][name] is None else rows[i][name] for i in series]
                    axes.plot(
                        at, values, style, color=colour, lw=1.8 if name == "mean_recall" else 1.1,
                        marker=marker if name == "mean_recall" else "", ms=3.5, label=label if number == 0 else None,
                    )  # fmt: skip
        fired = [i for i, alerts in enumerate(store.judged[result.rule].alerts) if alerts]
        if fired:
            axes.plot(
                [times[i] for i in fired],
                [rows[i]["mean_recall"] for i in fired],
                "v",
                color=ALERT,
                ms=6,
                label="alert",
            )
        _mark_sets(axes, store)
        axes.set_ylim(0, 1.04)
        axes.set_ylabel("canaries found")
        axes.grid(axis="y", color=LINE, lw=0.6)
        axes.legend(loc="lower left", ncols=5, fontsize=8)
        _dates(axes)
        said = f"{store.label}: recall {rows[0]['mean_recall']:.3f} at first, {rows[-1]['mean_recall']:.3f} now"
        return to_svg(drawn, f"Recall of {store.label}", said)


def by_type(store: StoreResult) -> Markup | None:
    """Recall of each learning type, where the set has more than one."""
    kinds = {(row["canary_set_id"], row["id"]): row["anchor_type"] for row in store.queries}
    found: dict[tuple[str, datetime, str], list[int]] = {}
    for row in store.ranks:
        kind = kinds.get((row["canary_set_id"], row["canary_id"]))
        if kind in LEARNING_TYPES:
            pair = found.setdefault((row["canary_set_id"], row["ts"], kind), [0, 0])
            pair[0] += bool(row["hit"])
            pair[1] += 1
    seen = [kind for kind in LEARNING_TYPES if any(key[2] == kind for key in found)]
    if len(seen) < 2:
        return None
    times = _times(store)
    with figure(_WIDTH, 2.3) as (drawn, axes):
        for kind, colour, style in zip(seen, SERIES, ("-", "--", ":"), strict=False):
            for number, series in enumerate(_by_series(store)):
                keys = [(store.rows[i]["canary_set_id"], store.rows[i]["ts"], kind) for i in series]
                shares = [
                    (i, found[key][0] / found[key][1]) for i, key in zip(series, keys, strict=True) if key in found
                ]
                points = [(times[i], value) for i, value in shares]
                if points:
                    xs, ys = zip(*points, strict=True)
                    axes.plot(xs, ys, style, color=colour, lw=1.6, label=kind if number == 0 else None)
        _mark_sets(axes, store, named=False)
        axes.set_ylim(0, 1.04)
        axes.set_ylabel("canaries found")
        axes.grid(axis="y", color=LINE, lw=0.6)
        axes.legend(loc="lower left", ncols=3, fontsize=8)
        _dates(axes)
        return to_svg(drawn, f"Recall by type of {store.label}", ", ".join(seen))


def timeline(store: StoreResult) -> Markup | None:
    """A row a canary, a column a cycle: found, found through a merge, missed."""
    mine = [i for i, row in enumerate(store.rows) if row["canary_set_id"] == store.active_set][-MOST_COLUMNS:]
    column = {(store.rows[i]["run_id"], store.rows[i]["ts"]): c for c, i in enumerate(mine)}
    anchors = {row["id"]: row["anchor_ref"] or "" for row in store.queries if row["canary_set_id"] == store.active_set}
    cells: dict[int, np.ndarray] = {}
    for row in store.ranks:
        at = column.get((row["run_id"], row["ts"]))
        if at is not None and row["canary_set_id"] == store.active_set:
            line = cells.setdefault(row["canary_id"], np.full(len(mine), np.nan))
            line[at] = 0.0 if not row["hit"] else 1.0 if row["hit_by"] == "xref" else 2.0
    if not cells:
        return None
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    order = sorted(cells, key=lambda canary: (np.nanmean(cells[canary] > 0), canary))
    colours = ("#9c2a00", "#9cc3dd", "#e9eef2")
    with figure(_WIDTH, 0.7 + 0.165 * len(order)) as (drawn, axes):
        axes.imshow(
            np.array([cells[canary] for canary in order]), aspect="auto", interpolation="nearest",
            cmap=ListedColormap(colours), vmin=-0.5, vmax=2.5, extent=(-0.5, len(mine) - 0.5, len(order) - 0.5, -0.5),
        )  # fmt: skip
        if len(mine) <= 60:
            axes.set_xticks(np.arange(-0.5, len(mine)), minor=True)
        axes.set_yticks(np.arange(-0.5, len(order)), minor=True)
        axes.grid(which="minor", color="white", lw=1)
        axes.tick_params(which="both", length=0)
        axes.set_yticks(
            range(len(order)), [short(reduced(anchors.get(c) or f"canary {c}"), 40) for c in order], fontsize=7.5
        )
        spread = store.rows[mine[-1]]["ts"] - store.rows[mine[0]]["ts"]
        stamp = "%Y-%m-%d" if spread.days >= 5 else "%m-%d %H:%M"
        ticks = sorted({int(t) for t in np.linspace(0, len(mine) - 1, min(6, len(mine)))})
        axes.set_xticks(ticks, [f"{store.rows[mine[t]]['ts']:{stamp}}" for t in ticks], fontsize=8)
        axes.spines[:].set_visible(False)
        labels = ("missed", "found through a merge", "found")
        axes.legend(
            handles=[Patch(color=c, label=n) for c, n in zip(colours, labels, strict=True)],
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, fontsize=8, borderaxespad=0.2,
        )  # fmt: skip
        missed = sum(bool(cells[canary][-1] == 0) for canary in order)
        return to_svg(drawn, f"Canaries of {store.label}", f"{missed} of {len(order)} missed in the newest cycle")


def shape(store: StoreResult) -> Markup:
    """Size and over-generation, distinct content, word diversity."""
    times, rows = _times(store), store.rows

    def values(name: str) -> list[float]:
        return [np.nan if row[name] is None else float(row[name]) for row in rows]

    with figure(_WIDTH, 4.2) as (drawn, axes):
        size, ratio, diversity = _panels(drawn, axes, (1.3, 1, 1))
        size.plot(times, values("store_total"), color=TREATMENT, lw=1.6, label="memories, lessons, knowledge")
        size.plot(times, values("over_generation_count"), "--", color=BASELINE, lw=1.6, label="merged too often")
        size.set_ylim(bottom=0)
        size.set_ylabel("assets")
        size.legend(loc="upper left", ncols=2, fontsize=8)
        low, high = size.get_ylim()
        size.set_ylim(low, high * 1.22)
        for panel, name, label, colour in (
            (ratio, "distinct_content_ratio", "distinct\ncontent", SERIES[2]),
            (diversity, "mean_bigram_diversity", "word-pair\ndiversity", SERIES[3]),
        ):
            panel.plot(times, values(name), color=colour, lw=1.6)
            bottom = min([v for v in values(name) if v == v], default=0.9)  # noqa: PLR0124  (NaN)
            panel.set_ylim(max(0.0, min(0.9, bottom - 0.03)), 1.01)
            panel.set_ylabel(label)
        for panel in (size, ratio, diversity):
            panel.grid(axis="y", color=LINE, lw=0.6)
            _mark_sets(panel, store, named=False)
        _dates(diversity)
        said = f"{rows[0]['store_total']} assets at first, {rows[-1]['store_total']} now"
        return to_svg(drawn, f"Shape of {store.label}", said)


def churn(store: StoreResult, window: int) -> Markup | None:
    """Accepted changes against what they moved."""
    accepted = [cycle.accepted for cycle in store.cycles]
    if not any(accepted):
        return None
    from matplotlib.ticker import MaxNLocator

    times = _times(store)
    moved: list[float] = []
    for i, cycle in enumerate(store.cycles):
        earlier = [c for c in store.cycles[max(0, i - window) : i] if c.set_id == cycle.set_id]
        moved.append(100 * float(cycle.exact_recall - earlier[0].exact_recall) if earlier else np.nan)
    fired = [
        i for i, alerts in enumerate(store.judged[Rule.AS_DESIGNED].alerts) if any(a.kind is Kind.CHURN for a in alerts)
    ]
    with figure(_WIDTH, 3.0) as (drawn, axes):
        bars, line = _panels(drawn, axes, (1, 1))
        bars.fill_between(times, accepted, step="mid", color="#c8d3dc", lw=0)  # bars, but one shape for years of them
        bars.set_ylim(0, max(accepted) * 1.1)
        bars.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
        bars.set_ylabel("accepted\nchanges")
        line.axhline(0, color=SOFT, lw=0.8)
        line.plot(times, moved, color=TREATMENT, lw=1.6)
        line.plot(
            [times[i] for i in fired], [moved[i] for i in fired], "s", color=ALERT, ms=5, label="churn (as designed)"
        )
        reach = max([abs(v) for v in moved if v == v], default=0.0)  # noqa: PLR0124  (NaN)
        line.set_ylim(-max(5.0, reach * 1.15), max(5.0, reach * 1.15))
        line.set_ylabel(f"recall against\n{window} cycles\nbefore, points")
        if fired:
            line.legend(loc="lower left", fontsize=8)
        for panel in (bars, line):
            panel.grid(axis="y", color=LINE, lw=0.6)
        _dates(line)
        return to_svg(drawn, f"Churn of {store.label}", f"{sum(accepted)} accepted changes")


def multiples(result: CanaryResult) -> Markup | None:
    """Recall of several stores, one small panel each on the same scale."""
    if len(result.stores) < 2:
        return None
    columns = min(3, len(result.stores))
    lines = -(-len(result.stores) // columns)
    with figure(_WIDTH, 0.4 + 1.35 * lines) as (drawn, axes):
        drawn.delaxes(axes)
        grid = np.atleast_2d(drawn.subplots(lines, columns, sharey=True, squeeze=False))
        for panel in grid.flat[len(result.stores) :]:
            panel.set_visible(False)
        for panel, store in zip(grid.flat, result.stores, strict=False):
            times = _times(store)
            for series in _by_series(store):
                panel.plot(
                    [times[i] for i in series], [store.rows[i]["mean_recall"] for i in series], color=TREATMENT, lw=1.4
                )
            fired = [i for i, alerts in enumerate(store.judged[result.rule].alerts) if alerts]
            panel.plot(
                [times[i] for i in fired], [store.rows[i]["mean_recall"] for i in fired], "v", color=ALERT, ms=3.5
            )
            _mark_sets(panel, store, named=False)
            panel.set_ylim(0, 1.06)
            panel.set_title(f"{short(store.label, 24)}: {store.status}", fontsize=9, loc="left", color=INK)
            panel.set_xticks([])
            panel.grid(axis="y", color=LINE, lw=0.5)
        return to_svg(drawn, "All stores", "; ".join(f"{store.label}: {store.status}" for store in result.stores))
