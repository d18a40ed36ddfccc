"""`akm-harbor memory`: benchmarks of memory layers, from the file to the release gate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli import memory_studies
from akm_harbor.cli.memory_data import bar, converted, counting, fetched
from akm_harbor.cli.say import say
from akm_harbor.errors import UsageError

if TYPE_CHECKING:
    from akm_harbor.memory.compare import Comparison, Gate
    from akm_harbor.memory.probe import ProbeReport

app = typer.Typer(
    name="memory",
    help="Memory benchmarks: convert, measure retrieval, compare two versions, run studies with a reader and a judge.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

DatasetName = Annotated[str | None, typer.Argument(help="A known dataset (see `memory datasets`), e.g. demo-locomo.")]
Data = Annotated[Path | None, typer.Option("--data", help="The published file or folder, or a converted dataset.")]


@app.command()
def datasets() -> None:
    """List the datasets that are known by name, with their licences.

    Example: `akm-harbor memory datasets`
    """
    from akm_harbor.memory.datasets.sources import sources

    for source in sources().values():
        how = "ships with this package" if source.path else "fetched on demand" if source.url else "give --data"
        say(f"{source.name:28} {source.benchmark:12} {source.variant:16} {how}; {source.licence}")


@app.command()
def fetch(
    dataset: Annotated[str, typer.Argument(help="A known dataset, e.g. locomo.")],
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="Folder to keep it in [default: cache].")
    ] = None,
) -> None:
    """Fetch a published file by its pinned revision and check its digest.

    Example: `akm-harbor memory fetch longmemeval-s`
    """
    from akm_harbor.memory.datasets.sources import find_source

    say(fetched(find_source(dataset), output))


@app.command()
def convert(
    data: Annotated[Path, typer.Argument(help="The published file or folder.")],
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="Where the converted dataset goes.")],
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="The known dataset it must be; its digest is checked.")
    ] = None,
) -> None:
    """Convert a benchmark to Parquet, streaming: memory is bounded by its largest record.

    Example: `akm-harbor memory convert longmemeval_s_cleaned.json -o longmemeval-s --dataset longmemeval-s`
    """
    from akm_harbor.memory.datasets.convert import convert as convert_file
    from akm_harbor.memory.datasets.sources import find_source

    source = find_source(dataset) if dataset else None
    with counting("Converting", "histories") as count:
        done = convert_file(data, output, source=source, progress=count)
    for problem in done.problems:
        say(f"{problem.kind}: {problem.detail} ({problem.action})", err=True)
    say(f"{done.path}: {done.benchmark}, {done.instances} histories, {done.questions} questions")


@app.command()
def probe(
    *,
    dataset: DatasetName = None,
    data: Data = None,
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", "-b", help="An arm: bm25, dense, grep, akm:command=search,synthesis=lead, ..."),
    ] = None,
    granularity: Annotated[
        list[str] | None, typer.Option("--granularity", "-g", help="turn, session or window:N; may be repeated.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "--out", "-o", help="The dataset to write.")] = None,
    topk: Annotated[int, typer.Option("--topk", "-k", help="Hits that make the context.")] = 5,
    ks: Annotated[str, typer.Option(help="Cut-offs of the metrics.")] = "1,3,5,10,20",
    corpus: Annotated[str, typer.Option(help="all, or user: LongMemEval's own corpus of user turns.")] = "all",
    budget: Annotated[int | None, typer.Option(help="Token limit of the context.")] = None,
    repeats: Annotated[int, typer.Option(help="Repeats under other document names and orders.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of names, orders and sample.")] = 0,
    sample: Annotated[int | None, typer.Option(help="Ask so many questions, drawn at random.")] = None,
    histories: Annotated[int | None, typer.Option(help="Use the first so many histories.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Worker processes.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Dask: a scheduler's address, or local:N. Needs the dask extra.")
    ] = None,
    akm: Annotated[Path | None, typer.Option("--akm", help="The akm executable of the akm arms.")] = None,
    compare: Annotated[
        tuple[Path, Path] | None, typer.Option("--compare", help="Compare two results, baseline first.", metavar="A B")
    ] = None,
    metric: Annotated[str, typer.Option(help="With --compare: the metric.")] = "recall_all",
    at: Annotated[int | None, typer.Option(help="With --compare: its cut-off [default: the context's].")] = None,
    max_loss: Annotated[float, typer.Option(help="With --compare: how much lower B's mean may be.")] = 0.01,
    max_zero_hit_rise: Annotated[float, typer.Option(help="With --compare: allowed rise of empty answers.")] = 0.0,
    max_name_dependent: Annotated[
        float, typer.Option(help="With --compare: allowed share of questions that depend on document names.")
    ] = 0.0,
) -> None:
    """Measure retrieval with no model, or compare two measurements.

    Examples:
    `akm-harbor memory probe demo-locomo -b bm25 -b grep -b oracle -g turn -o probe`

    `akm-harbor memory probe locomo --data locomo10.json -b akm:synthesis=lead --akm ./akm -g turn -o new`

    `akm-harbor memory probe --compare old new --metric recall_all`

    Exit codes: 0 done; 1 failures; 2 usage; 3 B is worse than A; 4 not comparable.
    """
    if compare is not None:
        from akm_harbor.memory.compare import Gate

        _compare(compare, Gate(metric, at, max_loss, max_zero_hit_rise, max_name_dependent))
        return
    from akm_harbor.memory.threads import one_thread

    one_thread()
    from akm_harbor.memory.answer.spec import with_akm
    from akm_harbor.memory.backends.registry import parse_arm
    from akm_harbor.memory.datasets.store import Store
    from akm_harbor.memory.probe import Settings
    from akm_harbor.memory.probe import probe as run_probe

    if output is None:
        raise UsageError("no place for the result", hint="Name one with --output.")
    arms = tuple(parse_arm(with_akm(text, akm)) for text in backend or ["bm25"])
    settings = Settings(
        arms=arms,
        granularities=tuple(granularity or ["session"]),
        ks=_numbers(ks),
        topk=topk,
        corpus=corpus,
        budget=budget,
        repeats=repeats,
        seed=seed,
        sample=sample,
        instances=histories,
        jobs=jobs,
        scheduler=scheduler,
    )
    store = Store(converted(dataset, data))
    with bar("Probing") as progress:
        report = run_probe(store, settings, output, progress)
    _print(report)
    if report.failed:
        say(f"akm-harbor: {report.failed} of {report.questions} questions failed", err=True)
        raise typer.Exit(1)


for command in (
    memory_studies.run,
    memory_studies.judge,
    memory_studies.score,
    memory_studies.report,
    memory_studies.verify,
    memory_studies.agreement,
):
    app.command()(command)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"{text!r} is no list of whole numbers", hint="For example --ks 1,5,10.") from error


def _print(report: "ProbeReport") -> None:
    from akm_harbor.memory.results import read_result
    from akm_harbor.memory.summary import markdown, summarize, upstream_means

    result = read_result(report.path)
    columns = ["granularity", "arm", "n", "recall_any", "recall_all", "recall_frac", "ndcg_std", "mrr"]
    columns += ["evidence_in_ctx", "ctx_tokens", "zero_hit", "tied_topk", "search_ms"]
    say(markdown(summarize(result), columns))
    upstream = upstream_means(result)
    if not upstream.empty:
        say("\n" + markdown(upstream, list(upstream.columns)))
    for problem in report.problems:
        say(f"{problem.kind}: {problem.detail} ({problem.action})", err=True)
    if report.resumed:
        say(f"{report.resumed} units were taken over from a run that had been stopped", err=True)
    say(f"\n{report.path}: {report.questions} rows")


def _compare(paths: tuple[Path, Path], gate: "Gate") -> None:
    from akm_harbor.memory.compare import compare as compare_results
    from akm_harbor.memory.results import read_result

    a, b = read_result(paths[0]), read_result(paths[1])
    found = compare_results(a, b, gate)
    for comparison in found:
        say(_sentence(comparison))
    left_out = set(a.trials["arm"]) & set(b.trials["arm"]) - {comparison.arm_a for comparison in found}
    if left_out and all(comparison.arm_a == comparison.arm_b for comparison in found):
        say(f"left out, without {gate.metric}: {', '.join(sorted(left_out))}", err=True)
    failures = [failure for comparison in found for failure in comparison.failures]
    if failures:
        for failure in failures:
            say(f"akm-harbor: {failure}", err=True)
        raise typer.Exit(3)


def _sentence(c: "Comparison") -> str:
    from akm_harbor.stats.results import Estimate

    arms = c.arm_a if c.arm_a == c.arm_b else f"{c.arm_a} -> {c.arm_b}"
    difference = c.difference
    if isinstance(difference, Estimate) and difference.interval is not None:
        low, high = difference.interval.low, difference.interval.high
        spread = f"{difference.value:+.4f} [{low:+.4f}, {high:+.4f}], p {difference.p:.3g} ({difference.method})"
    else:
        value = getattr(difference, "value", None)
        detail = getattr(difference, "detail", "")
        spread = f"{value:+.4f} (no interval: {detail})" if value is not None else detail
    names = [
        f"{side} {share:.1%}"
        for side, share in (("A", c.name_dependent_a), ("B", c.name_dependent_b))
        if share is not None
    ]
    return "\n".join(
        [
            f"{c.granularity}, {arms}: {c.verdict}",
            f"  {c.metric}: {c.mean_a:.4f} -> {c.mean_b:.4f}, difference {spread}",
            f"  {c.n} questions of {c.histories} histories, {c.changed} differ, {c.only_in_one} in one result only",
            f"  without a hit: {c.zero_hit_a:.1%} -> {c.zero_hit_b:.1%}",
            f"  depend on document names: {', '.join(names) if names else 'not checked (probe with --repeats 2)'}",
        ]
    )
