"""`akm-harbor ab run`, and what it shares with `arms cost`: which study, at what price."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli.say import say

if TYPE_CHECKING:
    from akm_harbor.study.cost import Prediction
    from akm_harbor.study.declaration import Study

StudyName = Annotated[str, typer.Argument(help="A study of arms/studies.toml; `akm-harbor arms list` lists them.")]
Model = Annotated[str | None, typer.Option("--model", "-m", help="provider/model instead of the declared one.")]
Attempts = Annotated[int | None, typer.Option("--attempts", "-k", min=1, help="Attempts of each task by each arm.")]
Declarations = Annotated[
    Path | None, typer.Option("--declarations", help="Studies of your own, written like arms/studies.toml.")
]
Pilot = Annotated[Path | None, typer.Option("--pilot", help="Dataset of a pilot: tokens of a trial, by arm.")]
Tokens = Annotated[
    str | None, typer.Option("--tokens", help="Tokens of a trial: INPUT,CACHED,OUTPUT, INPUT with the cached ones.")
]
Prices = Annotated[
    Path | None, typer.Option("--prices", help="TOML of prices, dollars per million tokens, before LiteLLM's table.")
]
Cap = Annotated[float | None, typer.Option("--cap", min=0, help="Dollars; a study predicted above it is not begun.")]


def predicted(study: "Study", pilot: Path | None, tokens: str | None, prices: Path | None) -> "Prediction | None":
    """The price of a study; None when nothing tells the tokens of a trial.

    Raises:
        AkmHarborError: the pilot, the tokens or the prices cannot be used.
    """
    from akm_harbor.errors import UsageError
    from akm_harbor.study.cost import parse_tokens, predict, usage_of_pilot

    if pilot is not None and tokens is not None:
        raise UsageError("--pilot and --tokens both say what a trial takes", hint="Give one of them.")
    names = [arm.name for arm in study.arms]
    if pilot is not None:
        usage, notes = usage_of_pilot(pilot, names, study.model)
        n = sum(one.n_trials for one in usage.values())
        return predict(study, usage, f"{n} trials of {pilot}", price_file=prices, notes=notes)
    if tokens is not None:
        one = parse_tokens(tokens)
        return predict(study, dict.fromkeys(names, one), "given by hand", price_file=prices)
    return None


def run(
    study: StudyName,
    model: Model = None,
    attempts: Attempts = None,
    out: Annotated[Path | None, typer.Option("--output", "--out", "-o", help="Its folder; default out/STUDY.")] = None,
    cap: Cap = None,
    pilot: Pilot = None,
    tokens: Tokens = None,
    prices: Prices = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="TOML of verdict rules, see docs/ci.md.")] = None,
    concurrent: Annotated[int | None, typer.Option("--concurrent", "-n", min=1, help="Trials at once.")] = None,
    environment: Annotated[
        str | None, typer.Option("--environment", "-e", help="docker, sandbox, or another of Harbor's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and price everything, start nothing.")] = False,
    declarations: Declarations = None,
) -> None:
    """Run a study, or go on with it where it was stopped: preflight, trials, dataset, reports.

    The same command resumes. The exit code is the worst of its comparisons: 0 no regression,
    3 regression, 4 no answer.
    """
    from dataclasses import replace
    from functools import partial

    from akm_harbor.ab.rules import read_rules
    from akm_harbor.cli.progress import counted
    from akm_harbor.study.declaration import changed, find_study
    from akm_harbor.study.run import Plan, Watch, run_study
    from akm_harbor.study.run import dry_run as check_only

    chosen = changed(find_study(study, declarations), model=model, attempts=attempts)
    chosen = replace(chosen, concurrent=concurrent or chosen.concurrent, environment=environment or chosen.environment)
    plan = Plan(predicted(chosen, pilot, tokens, prices), cap, read_rules(rules) if rules else {}, prices)
    place = out or Path("out") / chosen.name

    aloud = partial(say, err=True)
    if dry_run:
        check_only(chosen, place, plan, Watch(aloud))
        return
    with counted("trials") as advance:
        made = run_study(chosen, place, plan, Watch(aloud, lambda done, all_: advance(done, all_ or done)))
    for one in made:
        say(f"\n{one.summary}\nreport: {one.page}")
    codes = [one.result.verdict.exit_code for one in made]
    raise typer.Exit(3 if 3 in codes else max(codes, default=0))
