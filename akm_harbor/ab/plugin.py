"""A Harbor job plugin: `harbor run --plugin akm` collects the job and writes its A/B report at the end.

It follows Harbor's plugin protocol without importing Harbor, and whatever fails in here is logged and ends
here: a report is never worth a job.
"""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

from akm_harbor.errors import UsageError

logger = logging.getLogger("akm_harbor.report")
_KNOWN = frozenset({"out", "baseline", "treatment", "policy", "level", "rule", "margin", "min_delivered", "strict"})


class ReportPlugin:
    """Collects the finished job to Parquet and renders one report for each treatment arm.

    Args:
        kwargs: `--pk out=FOLDER` (default: `akm-reports/<job>` beside the jobs folder, never inside the
            job, where Harbor's resume deletes what is not a trial), `baseline=ARM`, `treatment=ARM`
            (default: every other arm), and the options of `akm-harbor report ab`.

    Raises:
        UsageError: an argument that does not exist; raised before the job starts.
    """

    def __init__(self, **kwargs: Any) -> None:
        unknown = sorted(kwargs.keys() - _KNOWN)
        if unknown:
            raise UsageError(f"no plugin argument {unknown[0]!r}", hint=f"There are {', '.join(sorted(_KNOWN))}.")
        self._given = kwargs
        self._job_dir: Path | None = None
        self._attempts: list[dict[str, Any]] = []

    async def on_job_start(self, job: Any) -> None:
        """Remember where the job is, and watch attempts: one that is retried leaves nothing on disk."""
        try:
            self._job_dir = Path(job.job_dir)
            job.on_trial_ended(self._on_trial_ended)
        except Exception:
            logger.warning("akm_harbor: no report will be made for this job", exc_info=True)

    async def _on_trial_ended(self, event: Any) -> None:
        """Keep one ended attempt; an exception here would abort the whole job."""
        try:
            result = event.result
            exception = getattr(result, "exception_info", None)
            verifier = getattr(result, "verifier_result", None)
            self._attempts.append(
                {
                    "trial_name": str(event.trial_name),
                    "trial_id": str(getattr(event, "trial_id", None) or getattr(result, "id", "")),
                    "task_name": str(event.task_name),
                    "exception_type": getattr(exception, "exception_type", None),
                    "rewards": dict(getattr(verifier, "rewards", None) or {}) if verifier else None,
                    "at": str(event.timestamp),
                }
            )
        except Exception:
            logger.warning("akm_harbor: an ended attempt could not be recorded", exc_info=True)

    async def on_job_end(self, job_result: Any) -> None:  # noqa: ARG002  (the protocol's; the files say more)
        """Collect and render in a thread of its own, and say where the result is."""
        try:
            lines = await asyncio.to_thread(self._report)
        except Exception as error:
            logger.warning("akm_harbor: no report: %s", error, exc_info=not hasattr(error, "exit_code"))
            return
        for line in lines:
            logger.warning("akm_harbor: %s", line)  # Harbor shows warnings on the terminal

    def _report(self) -> list[str]:
        from akm_harbor.ab.arms import load_trials
        from akm_harbor.ab.run import as_dataset, report
        from akm_harbor.report.text import slug
        from akm_harbor.report.verdict import write_output

        job = self._job_dir
        if job is None:
            raise UsageError("the job's directory is not known")
        default = job.resolve().parent.parent / "akm-reports" / job.name
        out = Path(str(self._given["out"])).expanduser() if "out" in self._given else default
        dataset = as_dataset([job], out)
        events = "".join(json.dumps(a, default=str) + "\n" for a in self._attempts)
        write_output(out / "attempts.jsonl", events)
        baseline, treatments = self._arms(load_trials(dataset))
        lines = [f"collected to {dataset}"]
        if not treatments:
            return [*lines, f"one arm only ({baseline}), so there is nothing to compare"]
        options = {k: v for k, v in self._given.items() if k not in {"out", "baseline", "treatment"}}
        for treatment in treatments:
            folder = out / slug(treatment) if len(treatments) > 1 else out
            made = report([dataset], baseline, treatment, folder, options=options)
            lines += [*made.summary.splitlines()[:3], f"report: {made.page}"]
        return lines

    def _arms(self, trials: Any) -> tuple[str, list[str]]:
        from akm_harbor.ab.arms import arm_names, guess_baseline

        names = arm_names(trials)
        baseline = str(self._given.get("baseline") or guess_baseline(trials))
        wanted = self._given.get("treatment")
        return baseline, [str(wanted)] if wanted else [n for n in names if n != baseline]
