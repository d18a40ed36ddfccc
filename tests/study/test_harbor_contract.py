"""The contract names what a changed Harbor does otherwise, and nothing else; real jobs in the sandbox."""

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from akm_harbor.agent.compat import HARBOR_VALIDATES
from akm_harbor.cli.app import app
from akm_harbor.errors import UsageError
from akm_harbor.study.harbor_contract.lab import ContractError, Lab
from akm_harbor.study.harbor_contract.run import ALL, hold

PLANTED = Path(__file__).parent / "planted_harbor"
ABOUT_MAIN = [
    "layout", "result", "task digest", "no metadata", "one-level scan", "trajectory before verifier", "log mounting",
    "hidden tests", "reward parsing", "error to reward", "secrets scrubbing", "retries", "plugin",
]  # fmt: skip
"""Clauses about the main job: held together they cost one job."""


@pytest.fixture
def planted(monkeypatch):
    """Holds Harbor with these changes to these clauses; names of the broken ones with what was seen."""

    def run(changes, clauses):
        monkeypatch.setenv("AKM_PLANTED_CHANGES", ",".join(changes))
        path = [str(PLANTED), *filter(None, [os.environ.get("PYTHONPATH")])]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
        held = hold(only=clauses)
        assert len(held.verdicts) == len(clauses)
        return {verdict.clause.name: verdict.broken for verdict in held.verdicts if verdict.broken}

    return run


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("changes", "clauses", "seen"),
    [
        ([], ABOUT_MAIN, {}),
        (
            ["metadata", "scan", "trajectory", "rewards", "timeouts", "secrets"],
            ABOUT_MAIN,
            {
                "no metadata": "now holds the task's [metadata]",
                "one-level scan": "a task two levels down was run",
                "trajectory before verifier": "reward of a test that reads the trajectory",
                "reward parsing": "rewards from reward.json beside a reward.txt",
                "error to reward": "an agent that timed out",
                "secrets scrubbing": "a secret that the agent printed",
            },
        ),
        (["layout"], ["layout"], {"layout": "no result.json"}),
        (["log-mounting"], ["log mounting"], {"log mounting": "is not at agent/from-agent.txt"}),
        (["order"], ["order"], {"order": "arms in the order of start"}),
        (["keeps-unfinished"], ["resume"], {"resume": "without result.json was not deleted"}),
        (["resumes-changed"], ["resume refusal"], {"resume refusal": "a job whose task changed was resumed"}),
        pytest.param(
            ["kwargs"],
            ["kwargs validation"],
            {"kwargs validation": "unknown kwarg of our agent"},
            marks=pytest.mark.skipif(not HARBOR_VALIDATES, reason="this Harbor leaves it to us"),
        ),
    ],
    ids=lambda value: "+".join(value)[:40] if isinstance(value, list) else "",
)
def test_a_changed_harbor_is_named(planted, changes, clauses, seen):
    broken = planted(changes, clauses)
    assert broken.keys() == seen.keys(), broken
    for name, words in seen.items():
        assert words in broken[name]


@pytest.mark.sandbox
def test_the_command_names_the_modules_that_rely_on_it(planted, monkeypatch):
    monkeypatch.setenv("AKM_PLANTED_CHANGES", "secrets")
    monkeypatch.setenv("PYTHONPATH", str(PLANTED))
    told = CliRunner().invoke(app, ["doctor", "--harbor", "--json", "--clause", "secrets scrubbing"])
    assert told.exit_code == 1
    clause = json.loads(told.stdout)["clauses"][0]
    assert (clause["name"], clause["ok"]) == ("secrets scrubbing", False)
    assert "akm_harbor.trials.values" in clause["relied_on_by"]


def test_every_module_that_a_clause_names_exists():
    package = Path(sys.modules["akm_harbor"].__file__).parent
    for clause in ALL:
        assert clause.relied_on_by
        for module in clause.relied_on_by:
            path = package.joinpath(*module.split("."))
            assert path.with_suffix(".py").exists() or (path / "__init__.py").exists(), module


def test_what_cannot_be_held_is_told(tmp_path):
    with pytest.raises(UsageError, match="no clause 'layuot'"):
        hold(only=["layuot"])
    with pytest.raises(ContractError, match="No such file"):
        hold(python=tmp_path / "python")
    without = tmp_path / "python-without"
    without.write_text("#!/bin/sh\nexit 1\n")
    without.chmod(0o755)
    with pytest.raises(ContractError, match="has no Harbor"):
        hold(python=without)


def test_a_job_that_fails_is_run_once_and_told_by_every_clause(tmp_path):
    broken = tmp_path / "python"
    broken.write_text(
        f'#!/bin/sh\ncase "$2" in *metadata*) echo 0.26.0;; *) echo run >> {tmp_path}/calls; exit 3;; esac\n'
    )
    broken.chmod(0o755)
    folder = tmp_path / "lab"
    folder.mkdir()
    lab = Lab(folder, broken)
    for _ in range(2):
        with pytest.raises(ContractError, match="ended with 3"):
            assert lab.main
    assert (tmp_path / "calls").read_text().count("run") == 1
