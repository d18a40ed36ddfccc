"""What the canary notebook calls: parameters as text or literals in, sections of the report out."""

import tempfile
from pathlib import Path

from akm_harbor.canary.alerts.model import Rule, Settings
from akm_harbor.canary.page import render_section
from akm_harbor.canary.run import SAMPLE, Made, report
from akm_harbor.errors import UsageError
from akm_harbor.resources import resource


def load(
    source: str, *, rule: str = "calibrated", rate: float | str = 0.02, window: int | str = 5, out: str = ""
) -> Made:
    """Make the report that `akm-harbor canary report` makes, from notebook parameters.

    Args:
        source: store folders, state.db files, snapshot histories or datasets, with commas between
            them; empty means the samples.
        rule: calibrated, as-designed or as-akm.
        rate: false alarms a cycle of the calibrated rule.
        window: cycles a rule looks back.
        out: where report.html and verdict.json go; empty means a temporary folder.

    Raises:
        AkmHarborError: as the command line has it.
    """
    paths = [Path(part.strip()).expanduser() for part in source.split(",") if part.strip()] or sample()
    folder = Path(out).expanduser() if out else Path(tempfile.mkdtemp(prefix="akm-harbor-canary-"))
    try:
        settings = Settings(window=int(window), rate=float(rate))
        chosen = Rule(rule)
    except ValueError as error:
        raise UsageError(str(error), hint="Rules: calibrated, as-designed, as-akm.") from error
    return report(paths, folder, chosen, settings)


def sample() -> list[Path]:
    """The sample histories that ship with the package."""
    return sorted(path for path in resource(*SAMPLE).iterdir() if path.is_dir())


def show(made: Made, section: str) -> None:
    """Display one section of the report as a cell's output."""
    from IPython.display import HTML, display

    display(HTML(render_section(made.result, section, made.measured)))  # type: ignore[no-untyped-call]
