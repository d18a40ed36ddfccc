"""`akm-harbor ab`: publish an A/B result with its evidence, check one, check the method on one's own data."""

from pathlib import Path
from typing import Annotated

import typer

from akm_harbor.cli import ab_run
from akm_harbor.cli.say import say

app = typer.Typer(help="The A/B study: run it, evidence archives, self-check, calibration.", no_args_is_help=True)
app.command(
    "run", epilog="Example: akm-harbor ab run akm-tasks-eval --model openai/gpt-5 --tokens 150000,110000,4000 --cap 50"
)(ab_run.run)

Inputs = Annotated[list[Path], typer.Argument(help="A dataset, or job directories (collected first).")]
By = Annotated[str, typer.Option(help="What names an arm: arm, job_name, submission, agent_name or model_name.")]
ErrorPolicy = Annotated[
    str, typer.Option("--policy", help="How errors count: keep-reward, missing-fails, fail, exclude, pass.")
]
Level = Annotated[float, typer.Option(help="Coverage of the intervals.")]
TaskNames = Annotated[
    Path | None, typer.Option("--task-names", help="JSON object: task name -> the name to pair it by.")
]
StripPrefix = Annotated[
    bool, typer.Option("--strip-prefix", help="Pair tasks by the part of their names after the last slash.")
]


@app.command("export", epilog="Example: akm-harbor ab export dataset -b control -t akm -o control-vs-akm.zip")
def export(
    inputs: Inputs,
    baseline: Annotated[str, typer.Option("--baseline", "-b", help="Name of the baseline arm.")],
    treatment: Annotated[str, typer.Option("--treatment", "-t", help="Name of the treatment arm.")],
    out: Annotated[Path, typer.Option("--output", "--out", "-o", help="The archive to write, a .zip file.")],
    by: By = "arm",
    policy: ErrorPolicy = "keep-reward",
    level: Level = 0.95,
    look: Annotated[str, typer.Option(help="Which of how many planned looks this is, e.g. 2/5.")] = "",
    rule: Annotated[str, typer.Option(help="What a regression is: significant or non-inferior.")] = "significant",
    margin: Annotated[float, typer.Option(help="Difference that does not matter, between 0 and 1.")] = 0.0,
    min_delivered: Annotated[float, typer.Option(help="Smallest delivered share of the attempts.")] = 0.9,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse on caveats too.")] = False,
    accept: Annotated[
        list[str] | None, typer.Option("--accept", help="A comparability check whose difference is intended.")
    ] = None,
    task_names: TaskNames = None,
    strip_prefix: StripPrefix = False,
) -> None:
    """Write rows, manifest, report and verdict of a comparison as one archive without secrets.

    The report in it is made from the rows in it, so that `akm-harbor ab verify` can make it again.
    """
    from akm_harbor.ab.export import export as write
    from akm_harbor.cli.progress import counted

    options = {
        "by": by,
        "policy": policy,
        "level": level,
        "look": look,
        "rule": rule,
        "margin": margin,
        "min_delivered": min_delivered,
        "strict": strict,
        "strip_prefix": strip_prefix,
        "accept": accept or [],
    }
    with counted("collect") as progress:
        made = write(inputs, baseline, treatment, out, options=options, task_names=task_names, progress=progress)
    say(made.summary())


@app.command("verify", epilog="Example: akm-harbor ab verify control-vs-akm.zip --json differences.json")
def verify(
    archive: Annotated[Path, typer.Argument(help="An archive that `akm-harbor ab export` wrote.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write what was found to this file.")] = None,
) -> None:
    """Make every published number again from the rows in the archive, and name those that differ.

    Exit code: 0 everything follows from the rows, 3 something differs, 4 something could not be checked
    (the page was written by another version), 1 not an archive that can be opened safely.
    """
    from akm_harbor.ab.archive_verify import verify as check
    from akm_harbor.cli.progress import spinning
    from akm_harbor.report.verdict import write_json

    with spinning("verify") as step:
        found = check(archive, step=step)
    if json_file is not None:
        write_json(json_file, found)
    say(found.text())
    raise typer.Exit(found.exit_code)


@app.command("self-check", epilog="Example: akm-harbor ab self-check dataset -b control -t akm -o out/")
def self_check(
    inputs: Inputs,
    out: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="Folder for self_check.html and self_check.json.")
    ],
    baseline: Annotated[
        str | None, typer.Option("--baseline", "-b", help="The arm to split in halves; without it, a guess.")
    ] = None,
    treatment: Annotated[
        str | None, typer.Option("--treatment", "-t", help="A second arm, for placebo labels and redrawn tasks.")
    ] = None,
    by: By = "arm",
    policy: ErrorPolicy = "keep-reward",
    level: Level = 0.95,
    draws: Annotated[int, typer.Option(min=100, max=1_000_000, help="Random data sets of each kind.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random splits.")] = 0,
    task_names: TaskNames = None,
    strip_prefix: StripPrefix = False,
) -> None:
    """Measure on your own data how often the report's interval and exact test err where nothing differs.

    Exit code: 0 they keep their promise, 3 one errs at least twice as often as it says, 4 nothing to measure.
    """
    from akm_harbor.ab.run import as_dataset
    from akm_harbor.ab.self_check import self_check as measure
    from akm_harbor.ab.self_check_page import write_self_check
    from akm_harbor.cli.progress import counted

    options = {"by": by, "policy": policy, "level": level, "strip_prefix": strip_prefix}
    with counted("collect") as progress:
        dataset = as_dataset(inputs, out, progress)
    with counted("draws") as progress:
        found = measure(
            dataset,
            baseline,
            treatment,
            options=options,
            task_names=task_names,
            draws=draws,
            seed=seed,
            progress=progress,
        )
    page, numbers = write_self_check(found, out)
    say(f"{found.text()}\npage: {page}\nnumbers: {numbers}")
    raise typer.Exit(found.exit_code)


@app.command("calibrate", epilog="Example: akm-harbor ab calibrate dataset -b control -t akm -o out/")
def calibrate(
    inputs: Inputs,
    out: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="Folder for calibration.html and calibration.json.")
    ],
    baseline: Annotated[
        str | None, typer.Option("--baseline", "-b", help="The control arm; without it, a guess.")
    ] = None,
    treatment: Annotated[
        str | None, typer.Option("--treatment", "-t", help="An arm whose headline is taken apart by kind of task.")
    ] = None,
    by: By = "arm",
    policy: ErrorPolicy = "keep-reward",
    level: Level = 0.95,
    low: Annotated[float, typer.Option(help="A control this rarely right leaves room: the guessing line.")] = 0.2,
    high: Annotated[float, typer.Option(help="A control this often right leaves none: the saturation line.")] = 0.8,
    task_names: TaskNames = None,
    strip_prefix: StripPrefix = False,
) -> None:
    """Which tasks can show a difference at all, and how much of the headline is the choice of tasks."""
    from akm_harbor.ab.calibration_report import report
    from akm_harbor.cli.progress import counted

    options = {"by": by, "policy": policy, "level": level, "strip_prefix": strip_prefix}
    with counted("collect") as progress:
        made = report(
            inputs,
            out,
            baseline=baseline,
            treatment=treatment,
            options=options,
            task_names=task_names,
            low=low,
            high=high,
            progress=progress,
        )
    say(f"{made.summary}\npage: {made.page}\nnumbers: {made.numbers}")
