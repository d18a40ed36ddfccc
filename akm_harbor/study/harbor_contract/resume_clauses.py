"""The clauses about a second call: what a resume keeps, deletes and refuses, and which kwargs are refused."""

import json
import re
from pathlib import Path

from akm_harbor.study.harbor_contract.clauses import Clause, expect, need
from akm_harbor.study.harbor_contract.lab import Lab, last_words, trials_of
from akm_harbor.trials.attempts import FILE


def _resume(lab: Lab) -> None:
    job = lab.fresh_small()
    folders = [trial.folder for trial in trials_of(job)]
    unfinished, broken, *kept = folders
    (unfinished / "result.json").unlink()
    (broken / "result.json").write_text("{", "utf-8")
    (job / FILE).write_text("ours\n", "utf-8")
    before = {folder.name: (folder / "result.json").read_bytes() for folder in kept}
    ran = lab.resume(job)
    expect(ran.code, 0, f"exit code of a resume ({last_words(ran)})")
    need(holds=not unfinished.exists(), otherwise="a trial without result.json was not deleted by the resume")
    need(holds=broken.exists(), otherwise="a trial with an unreadable result.json was deleted by the resume")
    after = {trial.folder.name: trial for trial in trials_of(job)}
    expect(len(after), len(folders) + 1, "trial directories after the resume, one unreadable and kept")
    for name, content in before.items():
        need(
            holds=name in after and (after[name].folder / "result.json").read_bytes() == content,
            otherwise="a finished trial was touched by the resume",
        )
    new = [trial for name, trial in after.items() if name not in {folder.name for folder in folders}]
    expect([trial.reward for trial in new], [1, 1], "rewards of the two trials run again under new names")
    expect((job / FILE).read_text("utf-8"), "ours\n", "a file of ours in the job's folder")


def _refusal(lab: Lab) -> None:
    job = lab.fresh_small()
    task = Path(json.loads((job / "config.json").read_text("utf-8"))["datasets"][0]["path"]) / "one"
    (task / "instruction.md").write_text("Act: write\n\nNow.\nwrite", "utf-8")
    before = sorted(trial.folder.name for trial in trials_of(job))
    ran = lab.resume(job)
    need(holds=ran.code != 0, otherwise="a job whose task changed was resumed")
    expect(sorted(trial.folder.name for trial in trials_of(job)), before, "trial directories after a refused resume")


def _filter(lab: Lab) -> None:
    job = lab.fresh_small()
    trial = trials_of(job)[0]
    info = {"exception_type": "CancelledError", "exception_message": "", "exception_traceback": ""}
    cancelled = {**trial.result, "exception_info": {**info, "occurred_at": trial.result["finished_at"]}}
    (trial.folder / "result.json").write_text(json.dumps(cancelled), "utf-8")
    ran = lab.resume(job)
    expect(ran.code, 0, f"exit code of a resume ({last_words(ran)})")
    need(holds=not trial.folder.exists(), otherwise="a cancelled trial was kept by the resume")
    expect(len(trials_of(job)), 8, "trial directories after a cancelled trial was run again")


def _kwargs(lab: Lab) -> None:
    arguments = ("run", "-p", str(lab.tasks / "write"), "-a", "akm_harbor:ControlOpenCode", "--ak", "no_such_kwarg=1")
    jobs = lab.folder / "kwargs-jobs"
    ran = lab.harbor(
        *arguments, "-e", "akm_harbor:SandboxEnvironment", "--ek", f"cache_dir={lab.folder / 'cache'}", "-o", str(jobs)
    )
    need(holds=ran.code != 0, otherwise="an unknown kwarg of our agent was let through")
    told = re.sub(r"\s+", "", ran.output)
    need(holds="no_such_kwarg" in told, otherwise=f"the refusal does not name the kwarg: {last_words(ran)}")
    results = [str(path.relative_to(jobs)) for path in jobs.glob("*/*/result.json")]
    expect(results, [], "trials run with an unknown kwarg")


RESUME_CLAUSES = (
    Clause(
        "resume",
        "a resume deletes trials without a result and runs them again, keeps finished ones and unreadable ones",
        ("study.resume", "trials.settle", "trials.attempts"),
        _resume,
    ),
    Clause(
        "resume refusal",
        "a job one of whose tasks changed is not resumed, and no finished trial is lost over it",
        ("study.resume",),
        _refusal,
    ),
    Clause(
        "resume of cancelled trials",
        "a resume deletes cancelled trials and runs them again",
        ("study.resume",),
        _filter,
    ),
    Clause(
        "kwargs validation",
        "an unknown kwarg of our agents ends the job before any trial",
        ("agent.compat", "agent.options"),
        _kwargs,
    ),
)
