"""A test double: Harbor with changes planted in it, to see the contract fail and name them.

Put this folder on PYTHONPATH and the changes' names, comma-separated, into AKM_PLANTED_CHANGES. Each change
is made to Harbor's own module as soon as it is imported, in every process.
"""

import contextlib
import importlib.abc
import importlib.util
import os
import shutil
import sys


def layout(module):
    """A trial's result has another name."""
    module.TrialPaths.result_path = property(lambda self: self.trial_dir / "trial-result.json")


def log_mounting(module):
    """The agent's logs lie in another folder of the trial."""
    module.TrialPaths.agent_dir = property(lambda self: self.trial_dir / "agent-logs")


def trajectory(module):
    """The trajectory is written only after the verifier."""
    whole = module.SingleStepTrial._run_verifier

    async def run(self):
        path = self.paths.agent_dir / "trajectory.json"
        aside = path.with_name("later.json")
        if path.exists():
            path.rename(aside)
        await whole(self)
        if aside.exists():
            aside.rename(path)

    module.SingleStepTrial._run_verifier = run


def rewards(module):
    """reward.txt comes before reward.json."""
    whole = module.Verifier.verify

    async def verify(self):
        result = await whole(self)
        with contextlib.suppress(Exception):
            result.rewards = self._parse_reward_text()
        return result

    module.Verifier.verify = verify


def scan(module):
    """Folders of tasks are scanned two levels deep."""
    whole = module.DatasetConfig._get_local_task_configs

    async def configs(self, *args, **kwargs):
        found = await whole(self, *args, **kwargs)
        deeper = sorted(path.parent for path in self.path.glob("*/*/task.toml"))
        return [*found, *(found[0].model_copy(update={"path": path}) for path in deeper)]

    module.DatasetConfig._get_local_task_configs = configs


def keeps_unfinished(module):
    """A resume leaves trials without a result where they are."""

    class Shutil:
        def __getattr__(self, name):
            return (lambda *_args, **_more: None) if name == "rmtree" else getattr(shutil, name)

    module.shutil = Shutil()


def resumes_changed(module):
    """A job whose tasks changed is resumed."""
    module.JobLock.__eq__ = lambda _self, _other: True
    module.JobLock.__hash__ = None


def metadata(module):
    """A task's metadata is written into the trial's folder."""
    whole = module.Trial._finalize

    async def finalize(self):
        (self.paths.trial_dir / "task.json").write_text(str(self.task.config.metadata))
        await whole(self)

    module.Trial._finalize = finalize


def timeouts(module):
    """A trial whose agent timed out is not verified."""
    whole = module.SingleStepTrial._run_verifier

    async def run(self):
        if self.result.exception_info is None:
            await whole(self)

    module.SingleStepTrial._run_verifier = run


def secrets(module):
    """Nothing is scrubbed."""
    module.Trial._scrub_jobs_dir = lambda _self: None


def kwargs(module):
    """Unknown kwargs of an agent are let through."""
    module.OpenCodeOptions.model_config["extra"] = "ignore"
    module.OpenCodeOptions.model_rebuild(force=True)


def order(module):
    """All trials of one arm start before those of the next."""
    whole = module.Job._init_trial_configs

    def configs(self):
        whole(self)
        self._trial_configs.sort(key=lambda config: str(config.agent.kwargs.get("arm")))

    module.Job._init_trial_configs = configs


CHANGES = {
    "layout": ("harbor.models.trial.paths", layout),
    "log-mounting": ("harbor.models.trial.paths", log_mounting),
    "trajectory": ("harbor.trial.single_step", trajectory),
    "rewards": ("harbor.verifier.verifier", rewards),
    "scan": ("harbor.models.job.config", scan),
    "keeps-unfinished": ("harbor.job", keeps_unfinished),
    "resumes-changed": ("harbor.models.job.lock", resumes_changed),
    "metadata": ("harbor.trial.trial", metadata),
    "timeouts": ("harbor.trial.single_step", timeouts),
    "secrets": ("harbor.trial.trial", secrets),
    "kwargs": ("harbor.agents.installed.opencode", kwargs),
    "order": ("harbor.job", order),
}


class Planter(importlib.abc.MetaPathFinder):
    """Lets Harbor's modules be found as always, and changes them once they have run."""

    def __init__(self, changes):
        self._changes = changes

    def find_spec(self, name, path=None, target=None):
        planted = [change for module, change in self._changes if module == name]
        if not planted:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                break
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            for change in planted:
                change(module)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("AKM_PLANTED_CHANGES"):
    names = os.environ["AKM_PLANTED_CHANGES"].split(",")
    sys.meta_path.insert(0, Planter([CHANGES[name] for name in names]))
