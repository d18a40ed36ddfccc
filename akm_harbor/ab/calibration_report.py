"""From inputs to a calibration's files: what the command line and the notebook both call."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.ab.calibration import Calibration, calibrate
from akm_harbor.ab.calibration_page import render_calibration, render_section, summary
from akm_harbor.ab.run import as_dataset, parse_options, read_task_names
from akm_harbor.errors import UsageError
from akm_harbor.report.verdict import to_plain, write_json, write_output
from akm_harbor.resources import sample_jobs


@dataclass(frozen=True, slots=True)
class Made:
    """What a calibration left behind."""

    result: Calibration
    page: Path
    numbers: Path
    summary: str


def report(
    inputs: Sequence[Path],
    out: Path,
    *,
    baseline: str | None = None,
    treatment: str | None = None,
    options: Mapping[str, Any] | None = None,
    task_names: Path | None = None,
    low: float = 0.2,
    high: float = 0.8,
    progress: Callable[[int, int], None] | None = None,
) -> Made:
    """Calibrate, and write `calibration.html` and `calibration.json` into `out`.

    Raises:
        AkmHarborError: bad input, or an output that cannot be written.
    """
    parsed = parse_options(options or {})
    names = read_task_names(task_names)
    dataset = as_dataset(inputs, out, progress)
    result = calibrate(dataset, baseline, treatment, options=parsed, task_names=names, low=low, high=high)
    page, numbers = out / "calibration.html", out / "calibration.json"
    write_output(page, render_calibration(result))
    write_json(numbers, document(result))
    return Made(result, page, numbers, summary(result))


def document(result: Calibration) -> dict[str, Any]:
    """The content of `calibration.json`."""
    return {
        "schema": "akm_harbor.ab.calibration/1",
        "package_version": akm_harbor.__version__,
        **to_plain(result),
    }


def load(
    source: str,
    baseline: str = "",
    treatment: str = "",
    *,
    low: float | str = 0.2,
    high: float | str = 0.8,
    out: str = "",
    task_names: str = "",
    **options: Any,
) -> Made:
    """Make the calibration that `akm-harbor ab calibrate` makes, from notebook parameters.

    Args:
        source: a dataset, or job directories with commas between them; empty means the recorded demo.
        baseline: the control arm; empty means a guess.
        treatment: an arm whose headline is taken apart; empty means the only other one, if there is just one.
        low: the guessing line; may be text.
        high: the saturation line; may be text.
        out: where calibration.html and calibration.json go; empty means a temporary folder.
        task_names: a JSON file of task name to task name, or empty.
        options: fields of `Options`; numbers may be text.

    Raises:
        AkmHarborError: as the command line has it.
    """
    paths = [Path(p.strip()).expanduser() for p in source.split(",") if p.strip()] or [sample_jobs()]
    folder = Path(out).expanduser() if out else Path(tempfile.mkdtemp(prefix="akm-harbor-calibration-"))
    try:
        lines = float(low), float(high)
    except ValueError:
        raise UsageError(f"low and high must be numbers, not {low!r} and {high!r}") from None
    return report(
        paths,
        folder,
        baseline=baseline or None,
        treatment=treatment or None,
        options=options,
        task_names=Path(task_names).expanduser() if task_names else None,
        low=lines[0],
        high=lines[1],
    )


def show(made: Made, section: str) -> None:
    """Display one section of the page as a cell's output."""
    from IPython.display import HTML, display

    display(HTML(render_section(made.result, section)))  # type: ignore[no-untyped-call]
