"""From datasets to the files people and machines read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.memory.evaluation.accuracy import ALL
from akm_harbor.memory.evaluation.analysis import MemoryResult, Options, analyse
from akm_harbor.memory.evaluation.page import render_page, share
from akm_harbor.memory.evaluation.sources import gather
from akm_harbor.memory.evaluation.verdict import verdict
from akm_harbor.report.verdict import write_json, write_output


@dataclass(frozen=True, slots=True)
class Made:
    """A report that was written.

    Attributes:
        result: what it shows.
        page, verdict_file: where it went.
    """

    result: MemoryResult
    page: Path
    verdict_file: Path

    @property
    def summary(self) -> str:
        """One line a panel and arm."""
        return "\n".join(
            f"panel {panel.panel.number} ({panel.panel.title}): {score.arm}"
            f"{'' if score.budget is None else f' at {score.budget} tokens'}: {share(score.value)}, n {score.n}"
            for panel in self.result.panels
            for score in panel.scores
            if score.group == ALL
        )


def report(paths: Sequence[Path], out: Path, options: Options) -> Made:
    """Write report.html and verdict.json.

    Raises:
        AkmHarborError: nothing to look at, or a place that cannot be written.
    """
    result = analyse(gather(paths), options)
    page, verdict_file = out / "report.html", out / "verdict.json"
    write_output(page, render_page(result))
    write_json(verdict_file, verdict(result))
    return Made(result, page, verdict_file)
