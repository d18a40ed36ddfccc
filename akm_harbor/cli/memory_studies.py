"""The `akm-harbor memory` commands with a model in them: run, judge, score, verify, agreement."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli.memory_data import bar, converted
from akm_harbor.errors import UsageError

if TYPE_CHECKING:
    from akm_harbor.memory.answer.book import Progress
    from akm_harbor.memory.answer.publish import StudyReport
    from akm_harbor.memory.answer.study import StudyRun

Config = Annotated[Path, typer.Option("--config", "-c", help="The study, e.g. study.yaml.")]


def run(
    *,
    config: Config,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The dataset to write.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Retrieve, print calls and price, call nothing.")] = False,
    waive: Annotated[
        list[str] | None,
        typer.Option(help="Pass a gate that is shut: retrieval-gate or oracle-ceiling. Recorded in the result."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Worker processes of the retrieval.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Dask for the retrieval: a scheduler's address, or local:N.")
    ] = None,
    akm: Annotated[Path | None, typer.Option("--akm", help="The akm executable of the akm arms.")] = None,
) -> None:
    """Run a study: every arm's context before the same reader, the answers scored, all of it recorded.

    Examples:
    `akm-harbor memory run -c study.yaml -o result --dry-run`

    `akm-harbor memory run -c study.yaml -o result`

    Stopped at any moment, the same command goes on; no answer is paid for twice (RESULT.calls.jsonl keeps them).

    Exit codes: 0 complete; 1 incomplete, failures; 2 usage; 4 a gate is shut.
    """
    from akm_harbor.memory.threads import one_thread

    one_thread()
    from akm_harbor.memory.answer.spec import load_study
    from akm_harbor.memory.answer.study import Options, StudyRun
    from akm_harbor.memory.datasets.store import Store

    if output is None:
        raise UsageError("no place for the result", hint="Name one with --output.")
    study = load_study(config)
    store = Store(converted(study.dataset or None, Path(study.data) if study.data else None))
    bars = _Bars()
    options = Options(
        waive=tuple(waive or ()), jobs=jobs, scheduler=scheduler, akm=akm, progress=bars.start, say=_aloud
    )
    try:
        study_run = StudyRun(study, store, output, options)
        bars.stop()
        _print_estimate(study_run)
        if dry_run:
            return
        _execute(study_run, bars)
    finally:
        bars.stop()


def _execute(study_run: "StudyRun", bars: "_Bars") -> None:
    from akm_harbor.memory.answer.publish import publish

    try:
        study_run.execute()
    except KeyboardInterrupt:
        _aloud("stopping: waiting for the calls in flight, whose answers are kept")
        raise
    finally:
        bars.stop()
        study_run.close()
    report = publish(study_run)
    _print_report(report)
    if study_run.shut is not None:
        raise study_run.shut
    if not report.complete:
        stopped = report.manifest["stopped"]
        why = f" ({stopped[0]}: {stopped[1]})" if stopped else ""
        _aloud(f"akm-harbor: incomplete{why}; mend the cause and run the same command again: no answer is lost")
        raise typer.Exit(1)


def _aloud(text: str) -> None:
    typer.echo(text, err=True)


def _print_estimate(study_run: "StudyRun") -> None:
    """Calls and price before the first call."""
    from akm_harbor.memory.answer.price import total

    lines = study_run.estimate()
    whole = total(lines)
    typer.echo("| calls to make | answered before | prompt tokens | at most USD | what |\n|---|---|---|---|---|")
    for line in [*lines, whole]:
        usd = "unknown" if line.usd is None else f"{line.usd:.4f}"
        typer.echo(f"| {line.calls:,} | {line.known:,} | {line.in_tok:,} | {usd} | {line.what} |")
    cap = study_run.study.spending
    if whole.usd is not None and cap.max_usd is not None and whole.usd > cap.max_usd:
        _aloud(f"at most {whole.usd:.4f} USD, the cap is {cap.max_usd:.4f}: the run stops if it comes to that")
    if cap.max_usd is None and cap.max_calls is None:
        _aloud("no cap: the study sets neither spending.max_usd nor spending.max_calls")


def _print_report(report: "StudyReport") -> None:
    print_scores(report.scores.to_pylist())
    for problem in report.problems:
        _aloud(f"{problem.kind}: {problem.detail} ({problem.action})")
    spent = report.manifest["spent"]
    unknown = f", {spent['unpriced_calls']} calls without a price" if spent["unpriced_calls"] else ""
    typer.echo(f"\n{report.path}: {report.rows} rows, {spent['usd']:.4f} USD{unknown}")


def print_scores(rows: "list[dict[str, object]]", *, titles: "list[str] | None" = None) -> None:
    """The published table on the screen."""
    import pandas as pd

    from akm_harbor.memory.summary import markdown

    frame = pd.DataFrame(rows)
    frame["budget"] = ["as-is" if pd.isna(b) else str(int(b)) for b in frame["budget"]]
    columns = ["arm", "budget", "group", "mean", "n", "asked", "failed", "undecided", "low", "high", "se"]
    if frame["mean_aux"].notna().any():
        columns.insert(4, "mean_aux")
    if titles is not None:
        frame.insert(0, "result", titles)
        columns.insert(0, "result")
    typer.echo(markdown(frame, [*columns, "ctx_tokens", "usd_per_question"]))


class _Bars:
    """One progress bar at a time on stderr."""

    def __init__(self) -> None:
        self._open = ExitStack()

    def start(self, title: str) -> "Progress":
        """A callback for a new piece of work; the bar before it is closed."""
        self.stop()
        return self._open.enter_context(bar(title))

    def stop(self) -> None:
        """Close the bar."""
        self._open.close()
