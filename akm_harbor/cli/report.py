"""`akm-harbor report`: A/B reports and notebooks."""

from pathlib import Path
from typing import Annotated

import typer

from akm_harbor.cli.say import say

app = typer.Typer(help="Make reports: an A/B comparison, or one of the notebooks.", no_args_is_help=True)


@app.command("ab", epilog="Example: akm-harbor report ab dataset --baseline control --treatment akm -o out/")
def ab(
    context: typer.Context,
    inputs: Annotated[
        list[Path], typer.Argument(help="A dataset, or job directories (collected into OUT/dataset on the way).")
    ],
    baseline: Annotated[str, typer.Option("--baseline", "-b", help="Name of the baseline arm.")],
    treatment: Annotated[str, typer.Option("--treatment", "-t", help="Name of the treatment arm.")],
    out: Annotated[Path, typer.Option("--output", "--out", "-o", help="Folder for report.html and verdict.json.")],
    by: Annotated[
        str, typer.Option(help="What names an arm: arm, job_name, submission, agent_name or model_name.")
    ] = "arm",
    policy: Annotated[
        str, typer.Option(help="How errors count in the headline: keep-reward, missing-fails, fail, exclude, pass.")
    ] = "keep-reward",
    level: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.95,
    look: Annotated[
        str | None, typer.Option(help="Which of how many planned looks this is, e.g. 2/5; widens the intervals.")
    ] = None,
    rule: Annotated[str, typer.Option(help="What a regression is: significant or non-inferior.")] = "significant",
    margin: Annotated[float, typer.Option(help="Difference that does not matter, between 0 and 1.")] = 0.0,
    min_delivered: Annotated[
        float, typer.Option(help="Smallest delivered share of the attempts that have a verdict.")
    ] = 0.9,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse on caveats too.")] = False,
    accept: Annotated[
        list[str] | None, typer.Option("--accept", help="A comparability check whose difference is intended.")
    ] = None,
    task_names: Annotated[
        Path | None, typer.Option("--task-names", help="JSON object: task name -> the name to pair it by.")
    ] = None,
    strip_prefix: Annotated[
        bool, typer.Option("--strip-prefix", help="Pair tasks by the part of their names after the last slash.")
    ] = False,
    max_error_imbalance: Annotated[
        float, typer.Option(help="Largest difference of the arms' error shares that still gives an answer.")
    ] = 1.0,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="TOML of verdict rules; options given here go before it.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML here.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Also write a Markdown summary here.")] = None,
) -> None:
    """Compare two arms: writes report.html and verdict.json.

    Exit code: 0 no regression by the rule, 3 regression, 4 not comparable or not delivered.
    """
    from akm_harbor.ab import ci
    from akm_harbor.ab.rules import read_rules
    from akm_harbor.ab.run import report
    from akm_harbor.errors import UsageError
    from akm_harbor.report.verdict import write_output

    options = {
        "by": by,
        "policy": policy,
        "level": level,
        "look": look or "",
        "rule": rule,
        "margin": margin,
        "min_delivered": min_delivered,
        "strict": strict,
        "strip_prefix": strip_prefix,
        "accept": accept or [],
        "max_error_imbalance": max_error_imbalance,
    }
    ruled = read_rules(rules) if rules is not None else {}
    typed = {name for name in options if _typed(context, name)}
    options |= {name: value for name, value in ruled.items() if name not in typed}
    if look == "":  # a shell variable that was never set must not leave the intervals as they are
        raise UsageError("--look is empty", hint="Write it like 2/5, or leave it out.")
    if junit is not None and markdown is not None and junit.resolve() == markdown.resolve():
        raise UsageError(f"--junit and --markdown are both {str(junit)!r}", hint="Name two different files.")
    made = report(inputs, baseline, treatment, out, options=options, task_names=task_names)
    if junit is not None:
        write_output(junit, ci.junit(made.result))
    if markdown is not None:
        write_output(markdown, ci.markdown(made.result))
    say(made.summary)
    say(f"report: {made.page}\nverdict: {made.verdict_file}")
    raise typer.Exit(made.result.verdict.exit_code)


def _typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@app.command("notebook", epilog="Example: akm-harbor report notebook ab_report -o out/ -p source=jobs/ -p policy=fail")
def notebook(
    name: Annotated[str, typer.Argument(help="A shipped notebook's name, e.g. ab_report, or a path.")],
    out: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="Folder for NAME.ipynb, NAME.html, the notebook's files.")
    ],
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="NAME=VALUE; may be given again.")
    ] = None,
    kernel: Annotated[str, typer.Option(help="Jupyter kernel to run it with.")] = "python3",
    timeout: Annotated[float | None, typer.Option(min=1, max=1e9, help="Longest time for one cell, seconds.")] = None,
) -> None:
    """Run a notebook with parameters; writes the executed notebook and one offline HTML page.

    A notebook that writes files (parameter `out`) puts them beside its page, unless told otherwise.
    """
    from akm_harbor.report.notebook_html import export_html
    from akm_harbor.report.notebooks import find_notebook, run_notebook
    from akm_harbor.report.parameters import parse_assignments

    source = find_notebook(name)
    run = run_notebook(
        source,
        out / source.name,
        parse_assignments(parameter or []),
        kernel=kernel,
        cell_timeout=timeout,
        progress=True,
        files=out.absolute(),  # else they would stay in a temporary folder
    )
    page = export_html(run.output, out / f"{source.stem}.html")
    say(f"notebook: {run.output}\npage: {page}")


@app.command("arms", epilog="Example: akm-harbor report arms dataset --baseline control -o out/")
def arms(
    inputs: Annotated[
        list[Path], typer.Argument(help="A dataset, or job directories (collected into OUT/dataset on the way).")
    ],
    out: Annotated[Path, typer.Option("--output", "--out", "-o", help="Folder for arms.html and arms.json.")],
    baseline: Annotated[
        str | None, typer.Option("--baseline", "-b", help="Contrast every other arm with this one.")
    ] = None,
    arm: Annotated[list[str] | None, typer.Option("--arm", "-a", help="Take only these arms; may be repeated.")] = None,
    by: Annotated[str, typer.Option(help="What names an arm, as for `report ab`.")] = "arm",
    policy: Annotated[str, typer.Option(help="How errors count in the headline.")] = "keep-reward",
    level: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.95,
    contrast: Annotated[
        list[str] | None,
        typer.Option(
            "--contrast", "-c", help="A planned contrast, ARM:VERSUS; may be repeated. Instead of a baseline."
        ),
    ] = None,
    planned: Annotated[
        bool,
        typer.Option("--planned", help="The contrasts and the 2 x 2 of arms/eight.yaml, as far as its arms are there."),
    ] = False,
    factorial: Annotated[
        str | None, typer.Option(help="Four arms with commas: both factors, the first, the second, neither.")
    ] = None,
    strip_prefix: Annotated[
        bool, typer.Option("--strip-prefix", help="Pair tasks by the part of their names after the last slash.")
    ] = False,
) -> None:
    """Rank all arms under every error policy, and contrast them with a baseline or as planned (Holm)."""
    from akm_harbor.ab.many import compare_arms, parse_contrast, plan_of
    from akm_harbor.ab.many_page import write_many
    from akm_harbor.ab.run import as_dataset, parse_options
    from akm_harbor.errors import UsageError

    names = tuple(n.strip() for n in factorial.split(",")) if factorial else None
    if names is not None and len(names) != 4:
        raise UsageError(f"--factorial takes four arms, not {len(names)}")
    options = parse_options({"by": by, "policy": policy, "level": level, "strip_prefix": strip_prefix})
    dataset = as_dataset(inputs, out)
    contrasts = tuple(map(parse_contrast, contrast or ()))
    if planned:
        if contrasts or baseline or by != "arm":
            raise UsageError("--planned names its contrasts and arms itself", hint="Leave out -b, -c and --by.")
        contrasts, design = plan_of(dataset, arm or ())
        names = names or design
    result = compare_arms(dataset, options, baseline=baseline, only=arm or (), contrasts=contrasts, factorial=names)
    say(f"{len(result.arms)} arms\npage: {write_many(result, out)}")
