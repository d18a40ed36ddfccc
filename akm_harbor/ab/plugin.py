"""A Harbor job plugin: `harbor run --plugin akm` collects the job and writes its A/B report at the end.

It follows Harbor's plugin protocol without importing Harbor. Harbor lets an exception in a trial's
hook end the whole job, so every hook here catches whatever fails inside it: a report is never worth a job.
"""

import asyncio
import functools
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError, UsageError

logger = logging.getLogger("akm_harbor.report")
_KNOWN = frozenset({"out", "baseline", "treatment", "policy", "level", "rule", "margin", "min_delivered", "strict"})
_SENSITIVE = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|AUTH", re.IGNORECASE)  # Harbor's own rule

type _Hook = Callable[[Any, Any], Awaitable[None]]


def _harmless(what: str) -> Callable[[_Hook], _Hook]:
    """Make a hook one that never raises but for an interrupt: what failed inside is logged."""

    def decorate(hook: _Hook) -> _Hook:
        @functools.wraps(hook)
        async def guarded(self: Any, argument: Any) -> None:
            try:
                await hook(self, argument)
            except (Exception, SystemExit) as error:  # noqa: BLE001
                try:
                    ours = isinstance(error, AkmHarborError)
                    logger.warning("akm_harbor: %s: %r", what, str(error) if ours else error, exc_info=not ours)
                except Exception:  # noqa: BLE001, S110  (an exception that cannot be printed; nothing is left to do)
                    pass

        return guarded

    return decorate


class ReportPlugin:
    """Records every attempt, collects the finished job to Parquet and renders a report for each treatment arm.

    An attempt that Harbor retries leaves nothing on disk. Each attempt that ends is therefore added to
    `akm-attempts.jsonl` in the job's folder at once, and becomes a superseded row of `trials`.

    Args:
        kwargs: `--pk out=FOLDER` (default: `akm-reports/<job>` beside the jobs folder, never a folder inside
            the job, where Harbor's resume deletes those that are no trials), `baseline=ARM`, `treatment=ARM`
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

    @_harmless("no report will be made for this job")
    async def on_job_start(self, job: Any) -> None:
        """Remember where the job is, and watch its attempts."""
        self._watch(job)

    @_harmless("an ended attempt could not be recorded")
    async def on_trial_ended(self, event: Any) -> None:
        """Record one ended attempt; Harbor calls this for retried ones too."""
        self._record(event)

    @_harmless("no report")
    async def on_job_end(self, job_result: Any) -> None:  # noqa: ARG002  (the protocol's; the files say more)
        """Collect and render in a thread of its own, and say where the result is."""
        for line in await asyncio.to_thread(self._report):
            logger.warning("akm_harbor: %s", line)  # Harbor shows warnings on the terminal

    def _watch(self, job: Any) -> None:
        self._job_dir = Path(job.job_dir)
        job.on_trial_ended(self.on_trial_ended)

    def _record(self, event: Any) -> None:
        from akm_harbor.trials.attempts import record

        if self._job_dir is None:
            raise UsageError("the job's directory is not known")
        result = event.result.model_dump(mode="json")
        task = getattr(getattr(event, "lock", None), "task", None)
        record(self._job_dir, result, by="plugin", digest=getattr(task, "digest", None), secrets=_secrets(event.config))

    def _report(self) -> list[str]:
        from akm_harbor.ab.arms import load_trials
        from akm_harbor.ab.run import as_dataset, report
        from akm_harbor.report.text import slug

        job = self._job_dir
        if job is None:
            raise UsageError("the job's directory is not known")
        default = job.resolve().parent.parent / "akm-reports" / job.name
        out = Path(str(self._given["out"])).expanduser() if "out" in self._given else default
        dataset = as_dataset([job], out)
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


def _secrets(config: Any) -> list[str]:
    """Values of a trial's own variables that are secrets by their name."""
    parts = (getattr(config, name, None) for name in ("agent", "verifier", "environment"))
    environments = [env for part in parts if isinstance(env := getattr(part, "env", None), Mapping)]
    return [str(v) for env in environments for k, v in env.items() if _SENSITIVE.search(str(k))]
