"""Seeded mistakes: each is refused, at the line it stands on, in words that name it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from akm_harbor.cli.app import app
from akm_harbor.resources import data_root
from akm_harbor.study.check import check_file

GOOD = """\
job_name: good
jobs_dir: {tmp}/jobs
n_attempts: 2
n_concurrent_trials: 4
retry:
  max_retries: 0
environment:
  type: docker
agents:
- import_path: akm_harbor:ControlOpenCode
  model_name: anthropic/claude-sonnet-4-5
  override_timeout_sec: 300
  extra_allowed_hosts: [api.anthropic.com]
  env:
    LOG_LEVEL: info
  kwargs:
    arm: control
    version: 1.18.33
    opencode_config:
      provider:
        anthropic:
          options: {timeout: 60000}
- import_path: akm_harbor:AkmOpenCode
  model_name: anthropic/claude-sonnet-4-5
  override_timeout_sec: 300
  extra_allowed_hosts: [api.anthropic.com]
  env:
    LOG_LEVEL: info
  kwargs:
    arm: akm
    version: 1.18.33
    opencode_config:
      provider:
        anthropic:
          options: {timeout: 60000}
datasets:
- path: {root}/tasks
  task_names:
  - drillbit--widen-pool
"""

# name: (what is replaced, by what, which occurrence, what the message must hold). The line expected is that of the
# first changed line, unless a fifth item gives the text of another one.
MISTAKES = {
    "typo in a key of the job": ("n_attempts: 2", "n_atempts: 2", 0, "no key `n_atempts`"),
    "typo in an arm's key": (
        "override_timeout_sec",
        "overide_timeout_sec",
        0,
        "no key `agents[0].overide_timeout_sec`",
    ),
    "typo in the environment": ("  type: docker", "  typ: docker", 0, "no key `environment.typ`"),
    "typo in a dataset": ("  task_names:", "  tasknames:", 0, "no key `datasets[0].tasknames`"),
    "plugins, which Harbor ignores": ("job_name: good", "plugins: [akm]", 0, "no key `plugins`"),
    "unknown kwarg": ("    arm: akm", "    arm: akm\n    contxt: bundle", 0, "no kwarg 'contxt'", "contxt"),
    "kwarg with a wrong value": ("    arm: akm", "    arm: akm\n    tools: maybe", 0, "'on' or 'off'", "maybe"),
    "kwarg of the other agent": (
        "    arm: control",
        "    arm: control\n    inject: 'off'",
        0,
        "no kwarg 'inject'",
        "inject",
    ),
    "unequal opencode config": ("timeout: 60000", "timeout: 90000", 1, "differs between the arms"),
    "unequal timeouts": ("override_timeout_sec: 300", "override_timeout_sec: 600", 1, "differs between the arms"),
    "a timeout on one arm only": ("  override_timeout_sec: 300\n", "", 0, "not set in agents[0]", "300"),
    "unequal models": ("anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-1", 1, "differs between the arms"),
    "unequal hosts": ("[api.anthropic.com]", "[api.anthropic.com, pypi.org]", 1, "differs between the arms"),
    "unequal variables": ("LOG_LEVEL: info", "LOG_LEVEL: debug", 1, "differs between the arms"),
    "unequal opencode versions": ("version: 1.18.33", "version: 1.18.34", 1, "differs between the arms"),
    "a placeholder as model": ("anthropic/claude-sonnet-4-5", "PROVIDER/MODEL", 0, "placeholder"),
    "a placeholder in brackets": ("{tmp}/jobs", "<JOBS FOLDER>", 0, "placeholder"),
    "a placeholder to do": ("job_name: good", "job_name: TODO", 0, "placeholder"),
    "retries": ("max_retries: 0", "max_retries: 2", 0, "2 retries"),
    "an arm twice": ("arm: akm", "arm: control", 0, "arm 'control' is agents[0] already"),
    "the same kwargs twice": ("akm_harbor:AkmOpenCode", "akm_harbor:ControlOpenCode", 0, "the same as agents[0]"),
    "a dataset path that depends on the folder": ("{root}/tasks", "tasks", 0, "taken from the folder"),
    "a jobs folder that depends on the folder": ("{tmp}/jobs", "jobs", 0, "taken from the folder"),
    "a path with nothing there": ("{root}/tasks", "{root}/taks", 0, "nothing is at"),
    "no jobs folder at all": ("jobs_dir: {tmp}/jobs\n", "", 0, "taken from the folder", "job_name"),
    "a missing model": ("  model_name: anthropic/claude-sonnet-4-5\n", "", 0, "no model", "ControlOpenCode"),
    "a model without provider": ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5", 0, "no provider"),
    "an agent that is not there": (
        "akm_harbor:AkmOpenCode",
        "akm_harbor:AkmOpencode",
        0,
        "there is no akm_harbor:AkmOpencode",
    ),
    "a stock agent": ("import_path: akm_harbor:AkmOpenCode", "name: opencode", 0, "nothing shows whether"),
    "a version that floats": ("version: 1.18.33", "version: latest", 0, "no exact version"),
    "a task that is not there": ("drillbit--widen-pool", "drillbit--widen-pol", 0, "no task 'drillbit--widen-pol'"),
    "a key twice": ("n_attempts: 2", "n_attempts: 2\nn_attempts: 3", 0, "twice", "n_attempts: 3"),
    "a secret written out": ("LOG_LEVEL: info", "MY_API_KEY: abcdef0123456789", 0, "secret"),
    "a short value under a secret's name": ("LOG_LEVEL: info", "TOKEN_BUDGET: '1.0'", 0, "blanks '1.0'"),
    "a secret in opencode's config": (
        "timeout: 60000",
        "apiKey: abcdef0123456789",
        0,
        "looks like a secret",
        "opencode_config",
    ),
    "a key that means nothing": ("timeout: 60000", "apiKey: none", 0, "cannot be resumed"),
    "the plugin's tools switched off": (
        "    opencode_config:\n      provider:",
        "    opencode_config:\n      tools: {'akm_*': false}\n      provider:",
        1,
        "switch off the plugin's tools",
        "opencode_config:@1",
    ),
    "no attempts": ("n_attempts: 2", "n_attempts: 0", 0, "measure nothing"),
    "a number that is none": ("n_attempts: 2", "n_attempts: two", 0, "valid integer"),
    "nothing verified": ("job_name: good", "verifier: {disable: true}", 0, "no rewards"),
    "install only": ("job_name: good", "install_only: true", 0, "nothing would be measured"),
    "a floating dataset": ("- path: {root}/tasks", "- name: terminal-bench", 0, "no version"),
}


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(text.replace("{tmp}", str(tmp_path)).replace("{root}", str(data_root())))
    return path


def _replaced(old: str, new: str, occurrence: int) -> tuple[str, int]:
    """The mutated job, and the line at which it was changed."""
    parts = GOOD.split(old)
    assert len(parts) > occurrence + 1, f"{old!r} is not there"
    head = old.join(parts[: occurrence + 1])
    return head + new + old.join(parts[occurrence + 1 :]), head.count("\n") + 1 + (len(old) - len(old.lstrip("\n")))


def test_the_good_job_has_no_mistake(tmp_path: Path) -> None:
    assert check_file(_write(tmp_path, GOOD)) == []


@pytest.mark.parametrize("name", MISTAKES)
def test_a_seeded_mistake_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    old, new, occurrence, message, *elsewhere = MISTAKES[name]
    text, line = _replaced(old, new, occurrence)
    if elsewhere:
        mark, _, which = elsewhere[0].partition("@")
        lines = [number for number, row in enumerate(text.splitlines(), 1) if mark in row]
        line = lines[int(which or 0)]
    found = check_file(_write(tmp_path, text))
    fitting = [finding for finding in found if message in finding.message]
    assert fitting, [str(finding) for finding in found]
    assert line in {finding.line for finding in fitting}


def test_the_command_names_file_line_and_remedy(tmp_path: Path) -> None:
    text, line = _replaced("override_timeout_sec", "overide_timeout_sec", 0)
    path = _write(tmp_path, text)
    result = CliRunner().invoke(app, ["arms", "check", str(path)])
    assert result.exit_code == 1
    assert result.exception is not None
    assert f"{path}: line {line}, `agents[0].overide_timeout_sec`" in result.stdout
    assert "Did you mean `override_timeout_sec`?" in result.stdout


def test_what_is_no_yaml_is_said_with_its_line(tmp_path: Path) -> None:
    path = _write(tmp_path, GOOD.replace("retry:", "retry: ["))
    result = CliRunner().invoke(app, ["arms", "check", str(path)])
    assert "line 7: not valid YAML" in str(result.exception)


def test_a_scripted_model_url_may_name_the_arm(tmp_path: Path) -> None:
    """Two base URLs that differ in the arm's label only are the same setting."""
    text = GOOD.replace("options: {timeout: 60000}", "options: {baseURL: 'http://127.0.0.1:9/arm/LABEL/v1'}")
    text = text.replace("LABEL", "control", 1).replace("LABEL", "akm", 1)
    assert check_file(_write(tmp_path, text)) == []
    crossed = text.replace("/arm/akm/", "/arm/control/")
    assert any("differs" in finding.message for finding in check_file(_write(tmp_path, crossed)))


@pytest.mark.parametrize(
    "text", ["", "[]", "just text", "agents: 3\ndatasets: no\n", "agents: [1, 2]\n", "agents: {a: 1}\n"]
)
def test_any_shape_is_answered(tmp_path: Path, text: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    assert check_file(path)
