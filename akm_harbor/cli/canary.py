"""`akm-harbor canary`: is a living akm store collapsing?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli.say import say
from akm_harbor.errors import UsageError

if TYPE_CHECKING:
    from akm_harbor.canary.alerts.model import Rule, Settings
    from akm_harbor.canary.locate import StoreFiles
    from akm_harbor.canary.mergefloor import FloorReport
    from akm_harbor.tables.problems import Problems

app = typer.Typer(
    name="canary",
    help="Store health: read akm's detector history, snapshot a live store, judge its trend.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Store = Annotated[Path, typer.Argument(help="akm's data directory ($AKM_DATA_DIR), or its index.db.")]
Sources = Annotated[
    list[Path], typer.Argument(help="Data directories, state.db files, snapshot histories or datasets.")
]
HistoryDir = Annotated[
    Path | None, typer.Option("--history", help="Where our snapshots are [default: beside the store, NAME.canary].")
]
RuleName = Annotated[str, typer.Option("--rule", help="calibrated, as-designed or as-akm.")]
Rate = Annotated[float, typer.Option("--rate", help="False alarms a cycle of the calibrated rule, e.g. 0.02.")]
Window = Annotated[int, typer.Option("--window", help="Cycles a rule looks back, 2 to 50.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _rule(rule: str, rate: float, window: int) -> "tuple[Rule, Settings]":
    from akm_harbor.canary.alerts.model import Rule, Settings

    try:
        return Rule(rule), Settings(rate=rate, window=window)
    except ValueError as error:
        raise UsageError(str(error), hint="Rules: calibrated, as-designed, as-akm.") from error


def _store(path: Path, history: Path | None) -> "tuple[StoreFiles, Path]":
    from akm_harbor.canary.locate import locate

    files = locate(path)
    return files, history or files.history


def _tell(problems: "Problems") -> None:
    for problem in problems:
        say(f"{problem.path}: {problem.kind}: {problem.detail} ({problem.action})", err=True)


@app.command("history")
def history(
    states: Annotated[
        list[Path], typer.Argument(metavar="STATE_DB…", help="state.db files, or the data directories they are in.")
    ],
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="The dataset to write.")],
) -> None:
    """Read the history akm's own detector left: cycles, canaries, ranks, runs, alerts.

    Copies that migrations left (`state.db.pre-*.bak`) are found and read too. Nothing in the store is touched.

    Example: `akm-harbor canary history ~/.local/share/akm/state.db -o history`
    """
    import akm_harbor
    from akm_harbor.canary.sources import gather, write_dataset

    found = gather(states)
    write_dataset(found, output, akm_harbor.__version__)
    _tell(found.problems)
    say(f"{output}: {', '.join(f'{len(rows)} {name}' for name, rows in found.rows.items())}")


@app.command()
def mint(
    store: Store,
    history: HistoryDir = None,
    count: Annotated[int, typer.Option("--count", help="How many canaries, 3 to 200.", min=3, max=200)] = 40,
    k: Annotated[int, typer.Option("--k", help="Found means: among the first K.", min=1, max=100)] = 10,
    retention: Annotated[int, typer.Option("--retention", help="Days a cycle is kept.", min=1)] = 365,
    as_akm: Annotated[bool, typer.Option("--as-akm", help="Pick and ask exactly as akm 0.9.0 does.")] = False,
) -> None:
    """Make the canary set of a store, once. It is never renewed by itself.

    Example: `akm-harbor canary mint ~/.local/share/akm`
    """
    _mint(store, history, count=count, k=k, retention=retention, as_akm=as_akm, replace=False)


@app.command()
def refresh(
    store: Store,
    history: HistoryDir = None,
    count: Annotated[int, typer.Option("--count", help="How many canaries, 3 to 200.", min=3, max=200)] = 40,
    k: Annotated[
        int | None, typer.Option("--k", help="Found means: among the first K [default: as before].", min=1, max=100)
    ] = None,
    as_akm: Annotated[bool, typer.Option("--as-akm", help="Pick and ask exactly as akm 0.9.0 does.")] = False,
) -> None:
    """Retire the set in use and make a new one: the trend begins anew, old rows are kept.

    Example: `akm-harbor canary refresh ~/.local/share/akm`
    """
    _mint(store, history, count=count, k=k, retention=None, as_akm=as_akm, replace=True)


def _mint(  # one place for both
    store: Path,
    history: Path | None,
    *,
    count: int,
    k: int | None,
    retention: int | None,
    as_akm: bool,
    replace: bool,
) -> None:
    from dataclasses import replace as changed

    from akm_harbor.canary.store import load, mint_set
    from akm_harbor.tables.problems import Problems

    files, place = _store(store, history)
    problems = Problems()
    settings = load(place).settings
    settings = changed(settings, k=k or settings.k, retention_days=retention or settings.retention_days)
    made = mint_set(files, place, problems, count=count, as_akm=as_akm, replace=replace, settings=settings)
    _tell(problems)
    say(f"{place}: {made.id}, {len(made.canaries)} canaries")
    if len(made.canaries) < count:
        say(f"only {len(made.canaries)} of {count}: the store holds no more that can be asked about", err=True)


@app.command()
def snapshot(
    store: Store,
    history: HistoryDir = None,
    wait: Annotated[
        float, typer.Option("--wait", help="Seconds to wait for a writer to pause.", min=0, max=3600)
    ] = 3.0,
) -> None:
    """Ask the canaries and measure the store's shape. The same index build twice makes one row.

    Works without akm, while akm is running too; nothing in the store is touched.

    Example: `akm-harbor canary snapshot ~/.local/share/akm`
    """
    from akm_harbor.canary.snapshot import by_type
    from akm_harbor.canary.store import take_snapshot
    from akm_harbor.tables.problems import Problems

    files, place = _store(store, history)
    problems = Problems()
    taken = take_snapshot(files, place, problems, wait_seconds=wait)
    _tell(problems)
    row = taken.cycle
    kinds = ", ".join(f"{kind} {hits}/{asked}" for kind, (hits, asked) in by_type(taken.reading.answers).items())
    say(
        f"{place}: {'new cycle' if taken.new else 'this index build was already measured'}: {row['n_hits']} of "
        f"{row['n_canaries']} canaries found ({kinds}), distinct content {row['distinct_content_ratio']:.3f}, "
        f"{row['store_total']} assets, {row['over_generation_count']} merged too often"
    )
    if taken.dropped:
        say(f"{taken.dropped} cycles were older than the history is kept, and dropped")


@app.command()
def show(
    sources: Sources,
    rule: RuleName = "calibrated",
    rate: Rate = 0.02,
    window: Window = 5,
    as_json: Json = False,
) -> None:
    """Print the set in use and the last window of cycles, with the status.

    Example: `akm-harbor canary show ~/.local/share/akm --json`
    """
    import json

    from akm_harbor.canary.analysis import analyse
    from akm_harbor.canary.listing import as_text, listing
    from akm_harbor.canary.sources import gather
    from akm_harbor.report.verdict import to_plain

    result = analyse(gather(sources), *_rule(rule, rate, window))
    found = listing(result)
    if as_json:
        say(json.dumps(to_plain(found), indent=2, ensure_ascii=False))
    else:
        say(as_text(found))
        _tell(result.problems)


@app.command()
def check(
    sources: Sources,
    rule: RuleName = "calibrated",
    rate: Rate = 0.02,
    window: Window = 5,
    verdict_file: Annotated[
        Path | None, typer.Option("--verdict", help="Also write the verdict here, as JSON.")
    ] = None,
    unknown_ok: Annotated[bool, typer.Option("--unknown-ok", help="Too little history is no reason to stop.")] = False,
) -> None:
    """Gate a consolidation run on the newest cycle.

    Exit code: 0 no alert, 3 an alert, 4 too little history to judge (0 with --unknown-ok).

    Example: `akm-harbor canary check ~/.local/share/akm && akm improve`
    """
    from akm_harbor.canary.analysis import analyse
    from akm_harbor.canary.listing import alert_text
    from akm_harbor.canary.sources import gather
    from akm_harbor.canary.status import verdict
    from akm_harbor.report.verdict import write_json

    result = analyse(gather(sources), *_rule(rule, rate, window))
    found = verdict(result)
    if verdict_file is not None:
        write_json(verdict_file, found)
    _tell(result.problems)
    for store in result.stores:
        say(f"{store.label}: {store.status} (confidence {store.confidence}). {store.message}")
        say(alert_text(store), nl=False)
    passed = unknown_ok and result.status == "unknown"
    raise typer.Exit(0 if passed else found["exit_code"])


@app.command()
def report(
    sources: Sources,
    out: Annotated[Path, typer.Option("--output", "--out", "-o", help="Folder for report.html and verdict.json.")],
    rule: RuleName = "calibrated",
    rate: Rate = 0.02,
    window: Window = 5,
) -> None:
    """Draw the trend: writes report.html (one offline file) and verdict.json.

    Example: `akm-harbor canary report ~/.local/share/akm -o out/`
    """
    from akm_harbor.canary.run import report as make

    made = make(sources, out, *_rule(rule, rate, window))
    say(made.summary)
    say(f"report: {made.page}\nverdict: {made.verdict_file}")


@app.command("merge-check")
def merge_check(
    before: Annotated[Path, typer.Argument(help="The bundle before the merges; with --proposals, as it is now.")],
    after: Annotated[Path | None, typer.Argument(help="The bundle after the merges.")] = None,
    proposals: Annotated[
        Path | None, typer.Option("--proposals", help="A state.db whose proposals are checked instead.")
    ] = None,
    status: Annotated[
        list[str] | None, typer.Option("--status", help="Which proposals [default: pending]; may be given again.")
    ] = None,
    retention: Annotated[
        float, typer.Option("--retention", help="Distinct words a merge must keep, as a share.", min=0.0, max=1.0)
    ] = 0.6,
    as_json: Json = False,
) -> None:
    """Hold every merge to the floor: it names what it was made from, and keeps its words.

    Exit code: 0 all merges pass, 3 one does not.

    Example: `akm-harbor canary merge-check bundle-before/ bundle/`
    """
    import json

    from akm_harbor.canary.mergefloor import check_folders, check_proposals
    from akm_harbor.report.verdict import to_plain
    from akm_harbor.tables.problems import Problems

    if (after is None) == (proposals is None):
        raise UsageError("give the bundle before and after, or one bundle and --proposals")
    problems = Problems()
    if proposals is not None:
        found = check_proposals(proposals, before, problems, statuses=status or ["pending"], min_retention=retention)
    else:
        assert after is not None  # said above
        found = check_folders(before, after, problems, min_retention=retention)
    say(json.dumps(to_plain(found), indent=2, ensure_ascii=False) if as_json else _floors(found))
    _tell(problems)
    raise typer.Exit(3 if found.violations else 0)


def _floors(found: "FloorReport") -> str:
    lines = []
    for merge in found.merges:
        verdict = "ok  " if merge.passed else "LOSS"
        lines.append(f"{verdict} {merge.merged}: {len(merge.participants)} into one, words kept {merge.retention:.2f}")
        if merge.missing:
            lines.append(
                f"     does not name {', '.join(merge.missing[:5])}{', ...' if len(merge.missing) > 5 else ''}"
            )
    lines += [f"gone {ref}: no asset names it as its source" for ref in found.vanished]
    lines.append(f"{len(found.merges)} merges, {found.violations} below the floor, {len(found.vanished)} gone unnamed")
    return "\n".join(lines)


@app.command()
def calibrate(
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="Where the measurements go, as JSON.")],
    series: Annotated[int, typer.Option("--series", help="Simulated series a figure.", min=100)] = 20_000,
) -> None:
    """Measure the rules on simulated canaries: false alarms, power, delay. Takes a quarter of an hour.

    Example: `akm-harbor canary calibrate -o calibration.json --series 2000`
    """
    from rich.progress import track

    from akm_harbor.canary.simulate.calibration import plan, to_json
    from akm_harbor.report.verdict import write_output

    found = [one for piece in track(plan(series), "Measuring", transient=True) for one in piece()]
    write_output(output, to_json(found))
    say(f"{output}: {len(found)} figures")
