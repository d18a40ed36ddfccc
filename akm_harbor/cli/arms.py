"""`akm-harbor arms`: the job files of studies: make them, check them, price them."""

from pathlib import Path
from typing import Annotated

import typer

from akm_harbor.cli.ab_run import Attempts, Cap, Declarations, Model, Pilot, Prices, StudyName, Tokens, predicted
from akm_harbor.cli.resume import resume
from akm_harbor.cli.say import say

app = typer.Typer(name="arms", help="Job files of studies: render, check, price, resume.", no_args_is_help=True)
app.command()(resume)


@app.command("list", epilog="Example: akm-harbor arms list")
def list_studies(declarations: Declarations = None) -> None:
    """List the studies: tasks, arms, attempts, model."""
    from akm_harbor.study.declaration import load_studies
    from akm_harbor.study.render import dataset_label

    for study in load_studies(declarations).values():
        arms = ", ".join(arm.name for arm in study.arms)
        say(f"{study.name}\n  {study.about}")
        say(f"  {dataset_label(study)}; {arms}; {study.attempts} attempts; {study.model}; {study.environment}")


@app.command(epilog="Example: akm-harbor arms render akm-tasks-eval --model openai/gpt-5 -o eval.yaml")
def render(
    study: Annotated[str | None, typer.Argument(help="One study; without it all of them.")] = None,
    model: Model = None,
    attempts: Attempts = None,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="Write one study's file, with absolute paths, here.")
    ] = None,
    folder: Annotated[Path | None, typer.Option("--folder", help="Folder of the shipped files; default arms/.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 and show a diff if files differ.")
    ] = False,
    declarations: Declarations = None,
) -> None:
    """Make the job files in arms/ from arms/studies.toml and agents/pins.toml, or one for this machine."""
    from akm_harbor.errors import AkmHarborError, UsageError
    from akm_harbor.report.verdict import write_output
    from akm_harbor.resources import data_root, resource
    from akm_harbor.study import render as rendering
    from akm_harbor.study.check import check_file
    from akm_harbor.study.declaration import changed, find_study
    from akm_harbor.study.render import job_of, to_text

    if study is None and (model or attempts or output):
        raise UsageError("--model, --attempts and --output go with one study", hint="Name it: arms render STUDY …")
    if study is not None and not check and (output or model or attempts):
        chosen = changed(find_study(study, declarations), model=model, attempts=attempts)
        text = to_text(chosen, job_of(chosen, root=data_root(), jobs_dir=Path("jobs").absolute()))
        if output is None:
            say(text, nl=False)
        else:
            write_output(output, text)
            say(str(output), err=True)
        return
    files = rendering.shipped_files(declarations)
    if study is not None:
        files = {f"{find_study(study, declarations).name}.yaml": files[f"{study}.yaml"]}
    place = folder or resource("arms")
    if check:
        diff = rendering.differences(place, files)
        mistakes = [
            finding for name in files if (place / name).is_file() for finding in check_file(place / name, data_root())
        ]
        say(diff, nl=False)
        for finding in mistakes:
            say(str(finding))
        if diff or mistakes:
            raise AkmHarborError(
                "not what is declared", path=place, hint="`akm-harbor arms render` writes the files anew."
            )
        say(f"{len(files)} job files match their declarations and are valid", err=True)
        return
    for name, text in files.items():
        write_output(place / name, text)
        say(str(place / name), err=True)


@app.command(epilog="Example: akm-harbor arms check arms/demo.yaml --root .")
def check(
    files: Annotated[list[Path], typer.Argument(help="Harbor job files.")],
    root: Annotated[
        Path | None, typer.Option("--root", help="Folder they will be run from; without it relative paths are refused.")
    ] = None,
) -> None:
    """Check job files by Harbor's own model and by what makes arms comparable; every mistake with its line."""
    from akm_harbor.errors import UsageError
    from akm_harbor.study.check import check_file

    found = [finding for path in files for finding in check_file(path, root.absolute() if root else None)]
    for finding in found:
        say(str(finding))
    if found:
        raise UsageError(f"{len(found)} mistake{'s' * (len(found) > 1)} in {len(files)} file{'s' * (len(files) > 1)}")
    say(f"{len(files)} file{'s' * (len(files) > 1)}: no mistakes", err=True)


@app.command(
    epilog="Example: akm-harbor arms cost terminal-bench-2 --pilot out/terminal-bench-2-pilot/dataset --cap 500"
)
def cost(
    study: StudyName,
    model: Model = None,
    attempts: Attempts = None,
    pilot: Pilot = None,
    tokens: Tokens = None,
    prices: Prices = None,
    cap: Cap = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    declarations: Declarations = None,
) -> None:
    """Price a study before it starts, judge included; exit 1 if it would cost more than the cap."""
    import json

    from akm_harbor.errors import UsageError
    from akm_harbor.report.verdict import to_plain
    from akm_harbor.study.cost import describe, require_below
    from akm_harbor.study.declaration import changed, find_study

    chosen = changed(find_study(study, declarations), model=model, attempts=attempts)
    prediction = predicted(chosen, pilot, tokens, prices)
    if prediction is None:
        raise UsageError(
            "nothing tells the tokens of a trial", hint="Give --pilot DATASET, or --tokens INPUT,CACHED,OUTPUT."
        )
    if as_json:
        say(json.dumps(to_plain(prediction), indent=2, allow_nan=False))
    else:
        say("\n".join(describe(prediction)))
    if cap is not None:
        require_below(prediction, cap)
