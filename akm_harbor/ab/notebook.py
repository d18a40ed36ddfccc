"""What the A/B notebook calls: parameters as text or literals in, sections of the report out."""

import tempfile
from pathlib import Path
from typing import Any

from akm_harbor.ab.page import render_section
from akm_harbor.ab.run import Made, report
from akm_harbor.resources import resource

SAMPLE = ("notebooks", "sample", "ab-jobs")
"""Two recorded jobs that ship with the package."""


def compare(source: str, baseline: str, treatment: str, *, out: str = "", task_names: str = "", **options: Any) -> Made:
    """Run the comparison that `akm-harbor report ab` runs, from notebook parameters.

    Args:
        source: a dataset, or job directories with commas between them; empty means the sample.
        baseline: the baseline's name.
        treatment: the treatment's name.
        out: where report.html and verdict.json go; empty means a temporary folder.
        task_names: a JSON file of task name to task name, or empty.
        options: fields of `Options`; numbers may be text.

    Raises:
        AkmHarborError: as the command line has it.
    """
    paths = [Path(p.strip()).expanduser() for p in source.split(",") if p.strip()] or [resource(*SAMPLE)]
    folder = Path(out).expanduser() if out else Path(tempfile.mkdtemp(prefix="akm-harbor-ab-"))
    names = Path(task_names).expanduser() if task_names else None
    return report(paths, baseline, treatment, folder, options=options, task_names=names)


def show(made: Made, section: str) -> None:
    """Display one section of the report as a cell's output."""
    from IPython.display import HTML, display

    display(HTML(render_section(made.result, section)))  # type: ignore[no-untyped-call]
