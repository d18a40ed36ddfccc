"""`ab run`: one command from a declared study to its verdict, which goes on where it was stopped."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

import akm_harbor
from akm_harbor.ab import ci
from akm_harbor.ab.run import Made, report
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.report.verdict import to_plain, write_output
from akm_harbor.resources import data_root
from akm_harbor.sandbox.harbor import plain_line, run_harbor
from akm_harbor.study import resume, scripted
from akm_harbor.study.cost import Prediction, actual_cost, compare, describe, require_below
from akm_harbor.study.declaration import Study
from akm_harbor.study.folder import StudyFolder
from akm_harbor.study.mend import Keeper, complete, finished, interrupted, mend
from akm_harbor.study.preflight import preflight, sweep_sandbox
from akm_harbor.study.render import Job, count_tasks, job_of
from akm_harbor.trials import collect

SCHEMA = "akm_harbor.study/1"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is asked for, beyond the study.

    Attributes:
        prediction: what it will cost; None where nothing tells the tokens of a trial.
        cap: dollars that the prediction must not exceed.
        options: options of the A/B report, e.g. from a rules file.
        price_file: prices for the comparison of predicted and actual.
    """

    prediction: Prediction | None = None
    cap: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    price_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told: lines for people, and trials done of trials planned (None if unknown)."""

    say: Callable[[str], None]
    progress: Callable[[int, int | None], None] = lambda _done, _planned: None


def require_prediction(plan: Plan) -> None:
    """Keep the cap's promise.

    Raises:
        AkmHarborError: predicted above the cap.
        UsageError: there is a cap, and nothing to predict with.
    """
    if plan.cap is None:
        return
    if plan.prediction is None:
        raise UsageError(
            "a cap needs the tokens of a trial", hint="Give --pilot DATASET, or --tokens INPUT,CACHED,OUTPUT."
        )
    require_below(plan.prediction, plan.cap)


def dry_run(study: Study, out: Path, plan: Plan, watch: Watch) -> None:
    """Say what would be run; check all of it, write nothing.

    Raises:
        AkmHarborError: it could not be run.
    """
    folder = StudyFolder(out.absolute(), study.name)
    manifest = folder.read()
    # A new folder is not made, so the job is the one before the scripted model has its port.
    job = _job(study, folder, manifest) if manifest else job_of(study, root=data_root(), jobs_dir=folder.jobs)
    _same_study(folder, manifest, job)
    for line in preflight(study, job):
        watch.say(line)
    _announce(study, folder, plan, watch)
    require_prediction(plan)
    watch.say("dry run: nothing was started")


def run_study(study: Study, out: Path, plan: Plan, watch: Watch) -> list[Made]:
    """Run a study, or go on with it, to its reports.

    Args:
        study: the study.
        out: its folder; a folder that holds a part of this very study is gone on with.
        plan: cap, prediction, verdict rules.
        watch: who is told.

    Returns:
        One report for each treatment.

    Raises:
        AkmHarborError: it cannot be run, Harbor failed, or the folder holds another study.
    """
    folder = StudyFolder(out.absolute(), study.name)
    with folder.held() as lock:
        manifest = folder.read()
        job = _job(study, folder, manifest)
        _same_study(folder, manifest, job)
        for line in preflight(study, job):
            watch.say(line)
        _announce(study, folder, plan, watch)
        require_prediction(plan)
        if not manifest:
            manifest = _new_manifest(study, job, plan)
            write_output(folder.job_file, _job_text(job))
        folder.write(manifest)
        _run_trials(study, folder, manifest, lock, watch)
        _dataset(folder, watch)
        cost = _account(study, folder, manifest, plan)
        watch.say(cost)
        return _reports(study, folder, plan, cost)


def _job(study: Study, folder: StudyFolder, manifest: dict[str, Any]) -> Job:
    job = job_of(study, root=data_root(), jobs_dir=folder.jobs)
    if study.policy:
        port = manifest.get("port")
        return scripted.point_at(job, port if isinstance(port, int) else scripted.free_port(), folder.root)
    return job


def _port(job: Job) -> int:
    provider = next(iter(job["agents"][0]["kwargs"]["opencode_config"]["provider"].values()))
    return int(provider["options"]["baseURL"].split("/")[2].rpartition(":")[2])


def _job_text(job: Job) -> str:
    return yaml.safe_dump(job, sort_keys=False, allow_unicode=True, width=110)


def _digest(job: Job) -> str:
    return hashlib.sha256(_job_text(job).encode()).hexdigest()


def _same_study(folder: StudyFolder, manifest: dict[str, Any], job: Job) -> None:
    """Refuse to mix two studies in one folder.

    Raises:
        UsageError: the folder holds another one; the message says where they differ.
    """
    if not manifest:
        if folder.job.exists():
            raise UsageError("holds a job that `ab run` did not begin", path=folder.job, hint="Choose another --out.")
        return
    if manifest.get("job_sha256") == _digest(job):
        return
    try:
        before = yaml.safe_load(folder.job_file.read_text("utf-8"))
    except (OSError, yaml.YAMLError):
        before = {}
    keys = [key for key in job if not isinstance(before, dict) or before.get(key) != job[key]]
    raise UsageError(
        f"holds another study: it differs in {', '.join(keys) or 'its job'}",
        path=folder.root,
        hint="Choose another --out; a study that changes half-way is two studies.",
    )


def _new_manifest(study: Study, job: Job, plan: Plan) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "package_version": akm_harbor.__version__,
        "harbor_version": version("harbor"),
        "begun_at": _now(),
        "study": to_plain(study),
        "job_sha256": _digest(job),
        "port": _port(job) if study.policy else None,
        "predicted": to_plain(plan.prediction),
        "actual": None,
        "runs": [],
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _announce(study: Study, folder: StudyFolder, plan: Plan, watch: Watch) -> None:
    n_tasks = count_tasks(study)
    arms = ", ".join(arm.name for arm in study.arms)
    tasks = f"{n_tasks} tasks" if n_tasks is not None else study.dataset
    watch.say(f"study: {study.name}, {tasks} x {study.attempts} attempts x {arms}; {study.model}, {study.environment}")
    if plan.prediction is not None:
        for line in describe(plan.prediction):
            watch.say(line)
    else:
        watch.say("cost: not predicted; --pilot DATASET or --tokens INPUT,CACHED,OUTPUT would")
    watch.say(f"by hand: {plain_line(['run', '-c', str(folder.job_file)])}")


# Trials


def _run_trials(study: Study, folder: StudyFolder, manifest: dict[str, Any], lock: int, watch: Watch) -> None:
    """Run what is missing; each run is written down before and after."""
    n_tasks = count_tasks(study)
    planned = None if n_tasks is None else n_tasks * study.attempts * len(study.arms)
    mended = mend(folder.job, folder.kept)
    before = sum(1 for _ in finished(folder.job))
    lost = interrupted(folder.job)
    for line in mended:
        watch.say(f"mended: {line}")
    if complete(folder.job):
        watch.say(f"all {before} trials are done: nothing to run")
        return
    if before or lost:
        watch.say(f"going on: {before} trials are done, {len(lost)} were interrupted and run again")
    arguments = _resume_arguments(folder) or ["run", "-c", str(folder.job_file)]
    run = {"at": _now(), "command": plain_line(arguments), "done_before": before, "interrupted": lost, "mended": mended}
    manifest["runs"].append({**run, "ended": None})
    folder.write(manifest)
    watch.say(f"running: {plain_line(arguments)}")
    keeper = Keeper(folder.job, folder.kept)

    def tick() -> None:
        keeper.keep()
        watch.progress(sum(1 for _ in folder.job.glob("*/result.json")), planned)

    ended = "failed"
    try:
        if study.policy:
            with scripted.serve(study, folder, int(manifest["port"])):
                run_harbor(arguments, folder.log, lock=lock, tick=tick)
        else:
            run_harbor(arguments, folder.log, lock=lock, tick=tick)
        ended = "done"
    finally:
        manifest["runs"][-1]["ended"] = ended
        folder.write(manifest)
        if study.environment == "sandbox":
            sweep_sandbox()


def _resume_arguments(folder: StudyFolder) -> list[str]:
    """How Harbor goes on with the job, after its lost trials were recorded; empty for a job that never began.

    Raises:
        AkmHarborError: something is in the way, e.g. a task that changed; nothing was deleted.
    """
    if not (folder.job / "config.json").is_file():
        return []
    found = resume.preview(folder.job)
    if found.blockers:
        lines = "\n  ".join(found.blockers)
        raise AkmHarborError(f"cannot go on, and nothing was deleted:\n  {lines}", path=folder.job)
    resume.record_doomed(found)
    return resume.resume_command(found)


# Results


def _dataset(folder: StudyFolder, watch: Watch) -> None:
    found = collect([folder.job], folder.dataset)
    statuses = ", ".join(f"{name} {n}" for name, n in sorted(found.statuses.items()))
    watch.say(f"dataset: {folder.dataset}, {found.n_trials} trials ({statuses})")
    if not found.n_trials:
        raise AkmHarborError("the job holds no trials", path=folder.job, hint=f"See {folder.log}.")


def _account(study: Study, folder: StudyFolder, manifest: dict[str, Any], plan: Plan) -> str:
    """Predicted against actual cost, as a line; the prediction is the one made before the first trial."""
    try:
        actual = actual_cost(study, folder.dataset, plan.price_file)
    except UsageError as error:
        return f"cost: actual not known: {error.message}"
    manifest["actual"] = to_plain(actual)
    folder.write(manifest)
    return compare((manifest.get("predicted") or {}).get("total"), actual)


def _reports(study: Study, folder: StudyFolder, plan: Plan, cost: str) -> list[Made]:
    """One report for each treatment, with what CI shows of it."""
    made = []
    for arm in study.treatments:
        place = folder.root / f"{study.baseline}-vs-{arm}"
        one = report([folder.dataset], study.baseline, arm, place, options=plan.options)
        write_output(place / "junit.xml", ci.junit(one.result))
        write_output(place / "summary.md", f"{ci.markdown(one.result)}\n{cost.capitalize()}\n")
        made.append(one)
    return made
