"""What the memory notebook calls: parameters as text or literals in, sections of the report out."""

import tempfile
from pathlib import Path

from akm_harbor.errors import UsageError
from akm_harbor.memory.evaluation.analysis import Options
from akm_harbor.memory.evaluation.page import render_section
from akm_harbor.memory.evaluation.run import Made, report
from akm_harbor.resources import resource

SAMPLE = ("notebooks", "sample", "memory")
"""Studies of a made-up data set with a stub for a model; they ship with the package."""


def load(
    source: str, *, baseline: str = "", level: float | str = 0.95, replicates: int | str = 20_000, out: str = ""
) -> Made:
    """Make the report from notebook parameters.

    Args:
        source: results of `memory run` and `memory probe`, or folders of them, with commas between;
            empty means the sample.
        baseline: the arm the others are compared with; empty: bm25, else the full context.
        level: coverage of the intervals.
        replicates: studies simulated a scenario.
        out: where report.html and verdict.json go; empty means a temporary folder.

    Raises:
        AkmHarborError: nothing to show, or a parameter that is none.
    """
    paths = [Path(part.strip()).expanduser() for part in source.split(",") if part.strip()] or [resource(*SAMPLE)]
    folder = Path(out).expanduser() if out else Path(tempfile.mkdtemp(prefix="akm-harbor-memory-"))
    try:
        options = Options(baseline.strip(), float(level), int(replicates))
    except ValueError as error:
        raise UsageError(f"not a number: {error}", hint="level is like 0.95, replicates like 20000.") from error
    return report(paths, folder, options)


def show(made: Made, section: str) -> None:
    """Display one section of the report as a cell's output."""
    from IPython.display import HTML, display

    display(HTML(render_section(made.result, section)))  # type: ignore[no-untyped-call]
