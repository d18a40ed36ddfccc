"""`akm-harbor demo`: two arms as real trials, their evidence, one offline report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli.say import say

if TYPE_CHECKING:
    from akm_harbor.agent.toolchain import Toolchain


def demo(
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="Folder for jobs, dataset and reports.")
    ] = Path("out/demo"),
    attempts: Annotated[int, typer.Option(min=1, help="Attempts of each task by each arm.")] = 2,
    recorded: Annotated[bool, typer.Option("--recorded", help="Run nothing, show the recorded trials.")] = False,
    akm: Annotated[bool, typer.Option("--akm/--no-akm", help="Also run the akm arm, where akm can be had.")] = True,
) -> None:
    """Go the whole way once: trials of two arms, dataset, A/B report. No key, no Docker.

    A scripted model plays the arms on the demo's tasks; opencode, Harbor, sandbox, tasks and
    evidence are real. Where trials cannot run, recorded ones are shown, and it says so.

    Example: `akm-harbor demo -o out/demo`
    """
    from akm_harbor.errors import AkmHarborError

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AkmHarborError(
            f"cannot be made ({error.strerror})", path=output, hint="Give --output a new folder, or an empty one."
        ) from None
    try:
        toolchain = None if recorded else _prepare(want_akm=akm)
    except AkmHarborError as error:
        _say(f"No trials can run here: {error}")
        toolchain = None
    if toolchain is None:
        from akm_harbor.resources import sample_jobs

        _say("Showing recorded trials instead of running any: real Harbor jobs that ship with the package.")
        _show(sample_jobs(), output)
    else:
        _show(_run(output, with_akm=akm and not toolchain.control_only, attempts=attempts), output)


def _prepare(*, want_akm: bool) -> "Toolchain":
    """The toolchain both arms use, built if need be; says whether akm is in it.

    Raises:
        AkmHarborError: trials cannot run on this machine, and why.
    """
    from rich.console import Console

    from akm_harbor.agent.build import build
    from akm_harbor.agent.errors import ToolchainError
    from akm_harbor.agent.platforms import host
    from akm_harbor.agent.toolchain import default_specs, find
    from akm_harbor.errors import AkmHarborError
    from akm_harbor.sandbox.demo import why_not

    if why := why_not():
        raise AkmHarborError(why, hint="`akm-harbor sandbox check` lists what is missing.")
    reason = "the toolchain was built without it; `akm-harbor toolchain build` tries again"
    try:
        toolchain = find(None)
    except ToolchainError:
        with Console(stderr=True).status("toolchain …") as status:

            def step(line: str) -> None:
                status.update(f"toolchain … {line}")

            try:
                toolchain = build(default_specs(control_only=not want_akm), host(), step=step)
            except ToolchainError as error:
                if not want_akm:
                    raise
                reason = error.message
                toolchain = build(default_specs(control_only=True), host(), step=step)
    _say(f"toolchain: opencode {toolchain.agent_version}, {toolchain.platform}")
    if want_akm and toolchain.control_only:
        _say(f"no akm arm: {reason}")
    return toolchain


def _run(output: Path, *, with_akm: bool, attempts: int) -> Path:
    """Run the trials under a progress bar; the job's folder."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from akm_harbor.sandbox.demo import run_demo

    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("", total=None)
        job = run_demo(
            output,
            with_akm=with_akm,
            attempts=attempts,
            progress=lambda done, planned: bar.update(row, completed=done, total=planned),
        )
    _say(f"trials: {job.planned}, arms {', '.join(job.arms)}; job {job.folder}")
    return job.folder


def _show(jobs: Path, output: Path) -> None:
    """Collect the jobs and report every arm against the control.

    Raises:
        AkmHarborError: there is nothing to compare, or (after the reports) trials went wrong.
    """
    from akm_harbor.ab.run import report
    from akm_harbor.errors import AkmHarborError
    from akm_harbor.sandbox.demo import CONTROL
    from akm_harbor.trials.collection import collect

    collected = collect([jobs], output / "dataset")
    _say(f"dataset: {collected.dataset}, {collected.n_trials} trials in {collected.seconds:.1f} s")
    treatments = [arm for arm in sorted(collected.arms, reverse=True) if arm != CONTROL]
    if not treatments or CONTROL not in collected.arms:
        raise AkmHarborError(f"trials of {sorted(collected.arms)} only: nothing to compare", path=jobs)
    for arm in treatments:
        made = report([collected.dataset], CONTROL, arm, output / f"{CONTROL}-vs-{arm}")
        say(f"\n{made.summary}")
        say(f"report: {made.page.resolve()}")
    odd = {status: n for status, n in collected.statuses.items() if status != "scored"}
    if odd:
        counts = ", ".join(f"{name} {n}" for name, n in sorted(odd.items()))
        raise AkmHarborError(
            f"not all trials were scored: {counts}", path=jobs, hint="Each trial's exception.txt tells why."
        )


def _say(line: str) -> None:
    say(line, err=True)
