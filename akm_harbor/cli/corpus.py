"""`akm-harbor corpus ...`: look after the tasks."""

from pathlib import Path
from typing import Annotated

import typer

from akm_harbor.cli.say import say

app = typer.Typer(help="Tasks on disk: lint, sync, register, convert, start a new one.", no_args_is_help=True)

TasksDir = Annotated[
    Path | None, typer.Argument(help="A folder of tasks, or one task; the shipped corpus if not given.")
]
BundlesDir = Annotated[
    Path | None, typer.Option("--bundles", help="Where the bundles lie, if not in ../agents/bundles or ../bundles.")
]


def _root(tasks: Path | None) -> Path:
    from akm_harbor.resources import resource

    return tasks if tasks is not None else resource("tasks")


@app.command("lint", epilog="Example: akm-harbor corpus lint tasks/ --mutants 12")
def lint_command(
    tasks: TasksDir = None,
    bundles: BundlesDir = None,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Also run solutions, controls and near misses.")] = True,
    mutants: Annotated[int, typer.Option(min=0, help="Near misses tried a task; 0 for all.")] = 12,
    akm: Annotated[str | None, typer.Option(help="An akm to ask where the gold asset ranks, e.g. `akm`.")] = None,
    only: Annotated[list[str] | None, typer.Option("--rule", help="Only this rule; may be repeated.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Not this rule; may be repeated.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Tasks run at a time.")] = 2,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and stop.")] = False,
) -> None:
    """Check that tasks measure what they say they measure. Exit 1 when something is found."""
    from rich.progress import Progress

    from akm_harbor.corpus import lint, rig
    from akm_harbor.errors import AkmHarborError

    groups = {"static", *(["run"] if run else []), *(["akm"] if akm else [])}
    if rules:
        for one in lint.select({"static", "run", "akm"}):
            say(f"{one.id} ({one.group})\n  why:  {one.why}\n  mend: {one.mend}")
        return
    reason = rig.why_not() if run else None
    if reason:
        raise AkmHarborError(reason, hint="Or check without running anything: --no-run.")
    chosen = lint.select(groups, only or (), ignore or ())
    root = _root(tasks)
    corpus, findings = lint.read_corpus(root, bundles)
    with Progress(transient=True) as bar:
        step = bar.add_task("running tasks", total=len(corpus.tasks), visible=run)
        corpus.plan = lint.RunPlan(mutants or None, jobs, akm, lambda: bar.advance(step))
        findings += lint.run_rules(corpus, chosen)
    say(lint.report(findings, root), nl=False)
    tried = list(corpus.tried.values())
    for result in tried:
        for mutant, why in result.excused:
            say(f"right as well: {mutant}  ({why})")
    ran = f", {sum(one.mutants for one in tried)} near misses tried" if tried else ", nothing run"
    say(f"{len(corpus.tasks)} tasks, {len(chosen)} rules{ran}: {len(findings)} findings")
    if findings:
        raise typer.Exit(1)


@app.command("sync", epilog="Example: akm-harbor corpus sync tasks/ --check")
def sync_command(
    tasks: TasksDir = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if something is stale.")] = False,
) -> None:
    """Write the generated files (verifier helper, compiled workflows) into the tasks that use them."""
    from akm_harbor.corpus.sync import sync
    from akm_harbor.corpus.task import read_task, task_folders

    stale = sync([read_task(folder) for folder in task_folders(_root(tasks))], check=check)
    for path in stale:
        say(f"{'stale' if check else 'wrote'} {path}")
    say(f"{len(stale)} {'stale' if check else 'written'}")
    if check and stale:
        raise typer.Exit(1)


@app.command("register", epilog="Example: akm-harbor corpus register tasks/ --version 1.0")
def register_command(
    tasks: TasksDir = None,
    version: Annotated[str, typer.Option(help="The version to release.")] = "1.0",
    check: Annotated[bool, typer.Option("--check", help="Only compare with what is released.")] = False,
) -> None:
    """Release the tasks as datasets in registry.json, and freeze their digests."""
    from akm_harbor.corpus.registry import register, registry_complaints
    from akm_harbor.corpus.task import read_task, task_folders

    root = _root(tasks)
    listed = [read_task(folder) for folder in task_folders(root)]
    lines = registry_complaints(root, listed) if check else register(root, listed, version)
    for line in lines:
        say(line)
    if check and lines:
        raise typer.Exit(1)


@app.command(
    "new", epilog="Example: akm-harbor corpus new drillbit--seat-edge --bundle drillbit --gold skills/drillbit"
)
def new_command(
    name: Annotated[str, typer.Argument(help="The folder's name, DOMAIN--NAME.")],
    tasks: Annotated[Path, typer.Option(help="The folder of tasks.")] = Path("tasks"),
    bundle: Annotated[str, typer.Option(help="The bundle the treatment gets.")] = "minimal",
    gold: Annotated[str, typer.Option(help="The asset that answers the task, e.g. skills/drillbit.")] = "",
    verifier: Annotated[str, typer.Option(help="script or pytest.")] = "script",
) -> None:
    """Start a task that passes the linter; then make it yours."""
    from akm_harbor.corpus.new import new_task

    for path in new_task(tasks, name, bundle=bundle, gold_ref=gold, verifier=verifier):
        say(f"wrote {path}")
    say(f"next: edit it, then run `akm-harbor corpus lint {tasks / name}`")


@app.command("answers", epilog="Example: akm-harbor corpus answers jobs/locomo -o answers/")
def answers_command(
    jobs: Annotated[Path, typer.Argument(help="A job that ran converted memory tasks, or a folder of jobs.")],
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="Folder for answers-ARM.jsonl.")],
) -> None:
    """Take the answers out of finished jobs, for a judge outside. Exit 1 when one could not be read."""
    from akm_harbor.corpus.memory_tasks_answers import collect_answers

    found = collect_answers(jobs, output)
    for path, count in found.files.items():
        say(f"{path}: {count} answers")
    for line in found.skipped:
        say(f"skipped {line}", err=True)
    if found.skipped:
        raise typer.Exit(1)


convert = typer.Typer(help="Turn another corpus into Harbor tasks.", no_args_is_help=True)
app.add_typer(convert, name="convert")


@convert.command(
    "legacy-akm-bench", epilog="Example: akm-harbor corpus convert legacy-akm-bench ~/akm-bench -o converted/"
)
def convert_legacy(
    source: Annotated[Path, typer.Argument(help="A checkout with fixtures/corpus and fixtures/stashes.")],
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="Where tasks/ and bundles/ go; must be new or empty.")
    ],
) -> None:
    """Convert a legacy akm-bench checkout. Exit 1 when a task could not be converted."""
    from rich.progress import track

    from akm_harbor.corpus.legacy import convert_checkout

    result = convert_checkout(source, output, lambda items: track(items, "converting", transient=True))
    say(result.summary())
    if result.problems:
        raise typer.Exit(1)


_Data = Annotated[Path, typer.Option("--data", help="The published file or folder, or a converted dataset.")]
_Output = Annotated[
    Path, typer.Option("--output", "--out", "-o", help="Where tasks/ and agents/bundles/ go; must be new or empty.")
]
_Limit = Annotated[int | None, typer.Option(min=1, help="Draw so many questions; every type keeps its share.")]
_Seed = Annotated[int, typer.Option(help="Seed of the draw and of the opaque names.")]
_History = Annotated[
    str, typer.Option(help="files: the conversations lie in /app/history on every arm; none: only akm has them.")
]
_Granularity = Annotated[
    str, typer.Option("--granularity", "-g", help="A document of akm's store: session, turn or window:N.")
]
_Synthesis = Annotated[str, typer.Option(help="A document's description: lead, keywords or off.")]
_Policy = Annotated[
    Path | None, typer.Option(help="Also write a scripted model's policy, to try the tasks with no model.")
]


def _convert_memory(
    benchmark: str,
    data: Path,
    output: Path,
    limit: int | None,
    seed: int,
    history: str,
    granularity: str,
    synthesis: str,
    policy: Path | None,
) -> None:
    from rich.progress import track

    from akm_harbor.corpus.memory_tasks import check_output, write_manifest, write_tasks
    from akm_harbor.corpus.memory_tasks_policy import write_policy
    from akm_harbor.errors import UsageError
    from akm_harbor.memory.datasets.convert import converted
    from akm_harbor.memory.datasets.store import Store
    from akm_harbor.memory.task_export import ExportSettings, export
    from akm_harbor.tables import PROBLEMS, Problems, read_table
    from akm_harbor.tables.atomic import filled_whole

    check_output(output, history)
    settings = ExportSettings(limit, seed, granularity, synthesis)
    settings.check()
    store = Store(converted(data, benchmark))
    if store.benchmark != benchmark:
        raise UsageError(f"{data} is {store.benchmark}", hint=f"Use `corpus convert {store.benchmark}`.")
    problems = Problems()
    about = {
        "benchmark": benchmark,
        **{key: store.manifest.get(key) for key in ("variant", "sha256", "revision", "source")},
        "settings": {
            "limit": limit, "seed": seed, "history": history, "granularity": granularity, "synthesis": synthesis,
        },
    }  # fmt: skip
    with filled_whole(output):
        histories = track(export(store, settings, problems), "writing tasks", transient=True)
        done = write_tasks(benchmark, histories, output, history=history)
        if not done.tasks:
            say("no question could be converted", err=True)
            raise typer.Exit(1)
        if policy is not None:
            write_policy(policy, export(store, settings, Problems()))
        left_out = [{"question_id": p.path, "kind": p.kind, "detail": p.detail, "action": p.action} for p in problems]
        write_manifest(done, about, left_out)
    for row in read_table(store.path, PROBLEMS).to_pylist():  # found when the data were converted, now or before
        say("{kind}: {detail} ({action})".format(**row), err=True)
    for problem in problems:
        say(f"{problem.kind}: {problem.path}: {problem.detail} ({problem.action})", err=True)
    for scorer, count in sorted(done.scorers.items()):
        say(f"{count} scored by {scorer}")
    say(f"{output}: {len(done.tasks)} tasks, {done.bundles} bundles, history in {history}")


@convert.command(
    "locomo", epilog="Example: akm-harbor corpus convert locomo --data locomo10.json -o locomo-tasks --limit 50"
)
def convert_locomo(
    data: _Data,
    output: _Output,
    limit: _Limit = None,
    seed: _Seed = 0,
    history: _History = "files",
    granularity: _Granularity = "session",
    synthesis: _Synthesis = "lead",
    policy: _Policy = None,
) -> None:
    """Make tasks of LoCoMo's questions, scored by its official F1."""
    _convert_memory("locomo", data, output, limit, seed, history, granularity, synthesis, policy)


@convert.command(
    "longmemeval", epilog="Example: akm-harbor corpus convert longmemeval --data longmemeval_s_cleaned.json -o tasks-s"
)
def convert_longmemeval(
    data: _Data,
    output: _Output,
    limit: _Limit = None,
    seed: _Seed = 0,
    history: _History = "files",
    granularity: _Granularity = "session",
    synthesis: _Synthesis = "lead",
    policy: _Policy = None,
) -> None:
    """Make tasks of LongMemEval's questions, scored by an offline stand-in for its judge."""
    _convert_memory("longmemeval", data, output, limit, seed, history, granularity, synthesis, policy)


@convert.command("beam", epilog="Example: akm-harbor corpus convert beam --data chats/100K -o beam-tasks --limit 40")
def convert_beam(
    data: _Data,
    output: _Output,
    limit: _Limit = None,
    seed: _Seed = 0,
    history: _History = "files",
    granularity: _Granularity = "session",
    synthesis: _Synthesis = "lead",
    policy: _Policy = None,
) -> None:
    """Make tasks of BEAM's questions, scored by an offline stand-in for its judge."""
    _convert_memory("beam", data, output, limit, seed, history, granularity, synthesis, policy)
