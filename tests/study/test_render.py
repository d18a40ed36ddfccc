"""The shipped job files are what is declared, on this Harbor too; declarations that cannot be meant are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from akm_harbor.agent.pins import load_pins
from akm_harbor.cli.app import app
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.resources import data_root, resource
from akm_harbor.study.check import check_file, check_job
from akm_harbor.study.declaration import changed, find_study, load_studies
from akm_harbor.study.render import corpus_tasks, job_of

NAMES = sorted(load_studies())


def test_the_shipped_files_are_what_is_declared() -> None:
    result = CliRunner().invoke(app, ["arms", "render", "--check"])
    assert result.exit_code == 0, f"{result.output}\nRun `akm-harbor arms render`."


def test_an_edited_file_is_shown_as_a_diff(tmp_path: Path) -> None:
    invoke = CliRunner().invoke
    assert invoke(app, ["arms", "render", "--folder", str(tmp_path)]).exit_code == 0
    path = tmp_path / "demo.yaml"
    path.write_text(path.read_text().replace("n_attempts: 2", "n_attempts: 3"))
    result = invoke(app, ["arms", "render", "--check", "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert "-n_attempts: 3\n+n_attempts: 2\n" in result.stdout
    (tmp_path / "akm-tasks-eval.yaml").unlink()
    assert (
        "akm-tasks-eval.yaml (on disk)" in invoke(app, ["arms", "render", "--check", "--folder", str(tmp_path)]).stdout
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_study_is_one_fair_job(name: str) -> None:
    job = yaml.safe_load(resource("arms", f"{name}.yaml").read_text())
    assert check_job(job, data_root()) == []
    assert len(job["agents"]) >= 2
    assert job["retry"] == {"max_retries": 0}
    assert {agent["kwargs"]["version"] for agent in job["agents"]} == {load_pins()["opencode"].version}


def test_this_harbor_takes_every_file(tmp_path: Path) -> None:
    """`harbor run --print-config`, in one process for all."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom harbor.cli.main import app\n"
        "for path in sys.argv[1:]:\n"
        "    done = CliRunner().invoke(app, ['run', '-c', path, '--print-config'])\n"
        "    assert done.exit_code == 0, (path, done.output, done.exception)\n"
        "    print(done.stdout.replace('\\n', ' '))\n"
    )
    files = [str(resource("arms", f"{name}.yaml")) for name in NAMES]
    environment = {**os.environ, "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [sys.executable, "-c", code, *files], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [job["job_name"] for job in printed] == NAMES


def test_a_file_for_this_machine_has_absolute_paths_and_the_wanted_model(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    command = ["arms", "render", "akm-tasks-local", "-m", "openai/gpt-5", "-k", "2", "-o", str(path)]
    assert CliRunner().invoke(app, command).exit_code == 0
    job = yaml.safe_load(path.read_text())
    assert check_file(path) == []
    assert {agent["model_name"] for agent in job["agents"]} == {"openai/gpt-5"}
    assert job["n_attempts"] == 2


def test_a_bundle_goes_to_the_arms_that_leave_theirs_open() -> None:
    study = find_study("terminal-bench-2")
    bundles = [agent["kwargs"].get("bundle") for agent in job_of(study)["agents"]]
    assert bundles == [None, "software-practice"]


def test_corpus_names_are_looked_up() -> None:
    assert len(corpus_tasks(find_study("akm-tasks-eval"))) == 19
    from dataclasses import replace

    with pytest.raises(UsageError, match="no task of akm-tasks is called 'drillbit--widen-pol'"):
        corpus_tasks(replace(find_study("demo"), tasks=("drillbit--widen-pol",)))
    with pytest.raises(UsageError, match="no dataset 'akm-tasks-evil'"):
        corpus_tasks(replace(find_study("demo"), dataset="akm-tasks-evil"))
    with pytest.raises(UsageError, match="has no version"):
        job_of(replace(find_study("terminal-bench-2"), dataset="terminal-bench"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[studies.demo]", "[study.demo]", "unknown key 'study'. Did you mean 'studies'"),
        ('policy = "demo-policy.yaml"', 'polcy = "demo-policy.yaml"', "unknown key 'polcy'. Did you mean 'policy'"),
        ('arms = ["control", "oracle-context"]', 'arms = ["control", "orcale-context"]', "that is not declared"),
        ('arms = ["control", "oracle-context"]', 'arms = ["control"]', "at least two different arms"),
        ('arms = ["control", "oracle-context"]', 'arms = ["oracle-context", "akm"]', "is none of its arms"),
        ("attempts = 3", 'attempts = "3"', "of the wrong kind"),
        ("attempts = 3", "attempts = true", "of the wrong kind"),
        ('dataset = "akm-tasks"\n', "", "[studies.demo] lacks dataset"),
        ('agent = "AkmOpenCode"', 'agent = "Akm"', "agent must be one of"),
        ("input = 1.0", "input = -1.0", "not negative"),
        ("[defaults]", "[defaults", "cannot be read as TOML"),
        ('kwargs = { context = "bundle" }', 'kwargs = { arm = "x" }', "without `arm`"),
    ],
)
def test_a_declaration_that_cannot_be_meant(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = resource("arms", "studies.toml").read_text()
    assert old in text
    path = tmp_path / "studies.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(AkmHarborError) as error:
        load_studies(path)
    assert message in str(error.value)
    assert error.value.path == path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "declares no study"),
        ("studies = 3", "[studies] must be a table"),
        ("studies = []", "[studies] must be a table"),
        ("arms = [1]\n[studies.x]\nattempts = 1", "[arms] must be a table"),
        ("[arms]\nx = 3\n[studies.x]\nattempts = 1", "[arms.x] must be a table"),
        ("[studies]\nx = 3", "[studies.x] must be a table"),
        ("defaults = 1\n[studies.x]\nattempts = 1", "[defaults] must be a table"),
        ("[studies.x]\ndataset = 'd'\nmodel = 'a/b'\narms = []", "arms = [] cannot be meant"),
    ],
)
def test_parts_that_are_no_tables(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "studies.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_studies(path)
    assert message in str(error.value)
    assert error.value.path == path


def test_an_unknown_study_names_the_near_ones() -> None:
    result = CliRunner().invoke(app, ["arms", "render", "akm-task-eval", "-o", "x.yaml"])
    assert "There is akm-tasks-eval" in str(result.exception)


def test_a_scripted_study_takes_no_real_model() -> None:
    with pytest.raises(UsageError, match="played by a scripted model"):
        changed(find_study("demo"), model="openai/gpt-5")
    with pytest.raises(UsageError, match="no provider"):
        changed(find_study("akm-tasks-eval"), model="gpt-5")
