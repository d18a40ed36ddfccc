"""The `akm-harbor memory` commands of studies with a model: run, judge, score, report, verify, agreement."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from akm_harbor.cli.memory_data import bar, converted
from akm_harbor.cli.say import say
from akm_harbor.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from akm_harbor.memory.answer.book import Progress
    from akm_harbor.memory.answer.publish import StudyReport
    from akm_harbor.memory.answer.study import StudyRun

Config = Annotated[Path, typer.Option("--config", "-c", help="The study, e.g. study.yaml.")]


def run(
    *,
    config: Config,
    output: Annotated[Path | None, typer.Option("--output", "--out", "-o", help="The dataset to write.")] = None,
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


def judge(
    *,
    result: Annotated[Path, typer.Argument(help="A study's result, whose answers are judged again.")],
    config: Config,
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="The dataset to write.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print calls and price, call nothing.")] = False,
) -> None:
    """Judge stored answers again: another judge, prompt or scorer; the reader is not asked.

    Example: `akm-harbor memory judge result -c other-judge.yaml -o rejudged`

    Of the study file scorer, judge, spending and concurrency are used.
    """
    from akm_harbor.memory.answer.rejudge import Rejudging
    from akm_harbor.memory.answer.result import read_study
    from akm_harbor.memory.answer.spec import load_study

    rejudging = Rejudging(read_study(result), load_study(config), output)
    line = rejudging.estimate()
    usd = "unknown" if line.usd is None else f"{line.usd:.4f}"
    say(f"{line.calls:,} judge calls to make, {line.known:,} answered before, at most {usd} USD")
    if dry_run:
        return
    with bar("Judging") as progress:
        try:
            report = rejudging.execute(progress)
        finally:
            rejudging.book.close()
    _print_report(report)
    if not report.complete:
        stopped = report.manifest["stopped"]
        why = f" ({stopped[0]}: {stopped[1]})" if stopped else ""
        _aloud(f"akm-harbor: incomplete{why}; run the same command again: no verdict is lost")
        raise typer.Exit(1)


def score(
    results: Annotated[list[Path], typer.Argument(help="Results of `memory run` or `memory judge`.")],
    variance: Annotated[
        bool, typer.Option("--variance", help="Also take the spread apart: questions, reader, judge.")
    ] = False,
    types: Annotated[bool, typer.Option("--types", help="Also every category of questions.")] = False,
) -> None:
    """Make the table of one result, or of several of one protocol, from their rows; no model.

    Example: `akm-harbor memory score monday tuesday`

    Exit codes: 0 done; 4 the results were made under different protocols, so they do not stand in one table.
    """
    from akm_harbor.errors import NotComparableError
    from akm_harbor.memory.answer.protocol_label import protocol_differences
    from akm_harbor.memory.answer.result import read_study
    from akm_harbor.memory.answer.table import score_rows

    read = [read_study(path) for path in results]
    for budget in sorted(set().union(*(r.manifest["protocols"] for r in read))):
        protocols = [r.manifest["protocols"][budget] for r in read if budget in r.manifest["protocols"]]
        differences = protocol_differences(protocols)
        if differences:
            raise NotComparableError(
                f"different protocols do not stand in one table ({budget}):\n  " + "\n  ".join(differences),
                hint="Score them one by one, or judge the stored answers again under one protocol (memory judge).",
            )
    rows, titles = [], []
    for result in read:
        made = score_rows(result.trials)
        rows += made
        titles += [result.path.name] * len(made)
        if not result.manifest["complete"]:
            _aloud(f"{result.path}: incomplete ({result.manifest['statuses']})")
    print_scores(rows, titles=titles if len(read) > 1 else None, types=types)
    for result in read:
        _print_label(result.manifest)
        if variance:
            _print_variance(result.trials)


def verify(
    result: Annotated[Path, typer.Argument(help="A result of `memory run` or `memory judge`.")],
) -> None:
    """Derive a published result again from its rows and calls, with no model, and name what does not follow.

    Example: `akm-harbor memory verify result`

    Exit code: 0 everything follows from the rows, 3 something does not, 1 not a result that can be read.
    """
    from akm_harbor.memory.answer.result import read_study
    from akm_harbor.memory.answer.verification import verify as verify_result

    read = read_study(result)
    found = verify_result(read)
    for finding in found[:_SHOWN]:
        say(str(finding))
    if found:
        more = f" (the first {_SHOWN} are shown)" if len(found) > _SHOWN else ""
        _aloud(f"akm-harbor: {result}: {len(found)} values do not follow from the rows{more}")
        raise typer.Exit(3)
    say(f"{result}: verified: {len(read.trials)} rows, {len(read.calls)} calls, {len(read.scores)} lines of the table")


def report(
    *,
    results: Annotated[
        list[Path],
        typer.Argument(help="Results of `memory run`, at least one, and of `memory probe`; or folders of them."),
    ],
    out: Annotated[Path, typer.Option("--output", "--out", "-o", help="Folder for report.html and verdict.json.")],
    baseline: Annotated[
        str,
        typer.Option("--baseline", "-b", help="The arm the others are compared with.", show_default="bm25, else full"),
    ] = "",
    level: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.95,
    replicates: Annotated[
        int, typer.Option(help="Studies simulated a scenario, for the intervals' coverage.")
    ] = 20_000,
) -> None:
    """Show studies and probes: accuracy, differences, retrieval, cost; report.html (one offline file), verdict.json.

    Example: `akm-harbor memory report result probe -o out/`
    """
    from akm_harbor.memory.evaluation.analysis import Options
    from akm_harbor.memory.evaluation.run import report as make

    made = make(results, out, Options(baseline, level, replicates))
    say(made.summary)
    say(f"report: {made.page}\nverdict: {made.verdict_file}")


def agreement(
    results: Annotated[list[Path], typer.Argument(help="A study and its re-judgements, or one with judge repeats.")],
) -> None:
    """Tell how far judges agree on the same answers: Cohen's kappa, Fleiss' kappa, verdicts that decide nothing.

    Example: `akm-harbor memory agreement result rejudged`
    """
    from akm_harbor.memory.answer.agreement import agreement as agree
    from akm_harbor.memory.answer.result import read_study

    found = agree([read_study(path) for path in results])
    say(f"{found.n} answers judged by all, {found.left_out} left out")
    for name, verdicts in found.raters.items():
        say(f"  {name}: " + ", ".join(f"{verdict} {n}" for verdict, n in verdicts.items()))
    for pair in found.pairs:
        kappa = (
            "undefined: both always say the same one thing"
            if pair.kappa is None
            else f"{pair.kappa:.3f} [{pair.low:.3f}, {pair.high:.3f}]"
        )
        say(f"{pair.a} and {pair.b}: agree on {pair.agreed:.1%}, Cohen's kappa {kappa}")
        for (a, b), n in sorted(pair.counts.items()):
            if a != b:
                say(f"  {a} and {b}: {n}")
    if found.fleiss is not None:
        say(f"Fleiss' kappa of all: {found.fleiss:.3f}")


_SHOWN = 50


def _print_label(manifest: "dict[str, Any]") -> None:
    """The protocol in one line, and what makes it less than it seems."""
    protocol = next(iter(manifest["protocols"].values()))
    judge = ", ".join(protocol["judge_served"]) or "none"
    reader = ", ".join(protocol["reader_served"]) or "none"
    say(
        f"\n{manifest['name']}: {protocol['benchmark']} ({manifest['dataset']['variant']}, {protocol['sample']}), "
        f"scorer {protocol['scorer']}, reader {reader}, judge {judge}, {protocol['granularity']}, "
        f"k {protocol['topk']}, category 5 {protocol['category_5']}, prompt {protocol['reader_prompt_sha256'][:12]}, "
        f"seed {protocol['seed']}, protocol {', '.join(p['id'] for p in manifest['protocols'].values())}"
    )
    for gate in manifest["gates"]:
        if gate["waived"]:
            say(f"  WAIVED: {gate['name']}: {gate['detail']}")
    probe = manifest.get("judge_probe")
    if probe:
        rate = probe["false_positive"]
        say(
            f"  the judge accepted {rate['k']} of {rate['n']} made-up wrong answers"
            + (f" [{rate['low']:.1%}, {rate['high']:.1%}]" if rate["n"] else "")
            + f", {rate['undecided']} undecided"
        )


def _print_variance(trials: "pd.DataFrame") -> None:
    from akm_harbor.memory.answer.variance import components

    say("\n| arm | budget | questions | question | reader | judge | SE by reader and judge | notes |")
    say("|---|---|---|---|---|---|---|---|")
    for one in components(trials):
        cells = ["-" if v is None else f"{v:.4f}" for v in (one.question, one.reader, one.judge, one.noise_se)]
        budget = "as-is" if one.budget is None else one.budget
        say(f"| {one.arm} | {budget} | {one.questions} | {' | '.join(cells)} | {'; '.join(one.notes)} |")


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
    say(text, err=True)


def _print_estimate(study_run: "StudyRun") -> None:
    """Calls and price before the first call."""
    from akm_harbor.memory.answer.price import total

    lines = study_run.estimate()
    whole = total(lines)
    say("| calls to make | answered before | prompt tokens | at most USD | what |\n|---|---|---|---|---|")
    for line in [*lines, whole]:
        usd = "unknown" if line.usd is None else f"{line.usd:.4f}"
        say(f"| {line.calls:,} | {line.known:,} | {line.in_tok:,} | {usd} | {line.what} |")
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
    say(f"\n{report.path}: {report.rows} rows, {spent['usd']:.4f} USD{unknown}")


def print_scores(rows: "list[dict[str, Any]]", *, titles: "list[str] | None" = None, types: bool = False) -> None:
    """The published table on the screen; `types` shows the categories too."""
    aux = any(row["mean_aux"] is not None for row in rows)
    columns = ["arm", "budget", "group", "mean", *(["mean_aux"] if aux else []), "n", "asked", "failed", "undecided"]
    columns += ["low", "high", "se", "ctx_tokens", "usd_per_question"]
    head = [*(["result"] if titles else []), *columns]
    say("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for number, row in enumerate(rows):
        if types or not row["group"].startswith("type:"):
            cells = [*([titles[number]] if titles else []), *(_cell(name, row[name]) for name in columns)]
            say("| " + " | ".join(cells) + " |")


def _cell(column: str, value: object) -> str:
    if column == "budget":
        return "as-is" if value is None else str(value)
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if column == "ctx_tokens" else f"{value:.5f}" if "usd" in column else f"{value:.3f}"


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
