"""From sources to the files people and machines read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.canary.alerts.model import DEFAULTS, Rule, Settings
from akm_harbor.canary.analysis import CanaryResult, analyse
from akm_harbor.canary.page import render_page
from akm_harbor.canary.simulate.calibration import Measured, read_calibration
from akm_harbor.canary.sources import gather
from akm_harbor.canary.status import verdict
from akm_harbor.report.verdict import write_json, write_output
from akm_harbor.resources import resource

SAMPLE = ("notebooks", "sample", "canary")


@dataclass(frozen=True, slots=True)
class Made:
    """A report that was written.

    Attributes:
        result: what it shows.
        measured: the calibration figures in it.
        page, verdict_file: where it went.
    """

    result: CanaryResult
    measured: tuple[Measured, ...]
    page: Path
    verdict_file: Path

    @property
    def summary(self) -> str:
        """One line a store."""
        return "\n".join(
            f"{store.label}: {store.status} (confidence {store.confidence}). {store.message}"
            for store in self.result.stores
        )


def report(paths: Sequence[Path], out: Path, rule: Rule = Rule.CALIBRATED, settings: Settings = DEFAULTS) -> Made:
    """Write report.html and verdict.json.

    Raises:
        AkmHarborError: nothing to look at, or a place that cannot be written.
    """
    result = analyse(gather(paths), rule, settings)
    measured = read_calibration(resource(*SAMPLE, "calibration.json"))
    page, verdict_file = out / "report.html", out / "verdict.json"
    write_output(page, render_page(result, measured))
    write_json(verdict_file, verdict(result))
    return Made(result, measured, page, verdict_file)
