"""The memory commands as a person types them."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from akm_harbor.cli.memory import app
from akm_harbor.errors import UsageError
from akm_harbor.tables import read_frame
from tests.memory.backends.akm_double import install

runner = CliRunner()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "cache"))


def run(*arguments):
    return runner.invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.mark.parametrize("command", ["probe", "convert", "fetch", "datasets"])
def test_every_command_has_help_with_an_example(command):
    done = run(command, "--help")
    assert done.exit_code == 0
    assert "akm-harbor memory" in done.output


def test_datasets_are_listed_with_their_licences():
    output = run("datasets").output
    assert "CC BY-NC 4.0" in output
    assert "demo-beam" in output


def test_convert_says_what_it_found(tmp_path):
    done = run("fetch", "demo-locomo")
    done = run("convert", done.output.strip(), "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert "locomo, 2 histories, 22 questions" in done.output
    assert "malformed-evidence: 1 x: demo-1/qa6" in done.output


def test_probe_prints_a_table_and_compare_gates_it(tmp_path):
    done = run("probe", "demo-locomo", "-b", "bm25", "-b", "none", "-g", "turn", "-o", tmp_path / "a", "--repeats", "2")
    assert done.exit_code == 0
    assert "| turn | bm25 | 19 |" in done.output
    done = run("probe", "--compare", tmp_path / "a", tmp_path / "a")
    assert done.exit_code == 0
    assert "turn, bm25: identical" in done.output
    assert "depend on document names: A 0.0%, B 0.0%" in done.output
    run("probe", "demo-locomo", "-b", "none", "-g", "turn", "-o", tmp_path / "b")
    run("probe", "demo-locomo", "-b", "bm25", "-g", "turn", "-o", tmp_path / "c")
    done = run("probe", "--compare", tmp_path / "c", tmp_path / "b", "--metric", "recall_any", "--at", "1")
    assert done.exit_code == 3
    assert "is lower by" in done.output


def test_longmemeval_prints_both_denominators(tmp_path):
    done = run("probe", "demo-longmemeval", "--corpus", "user", "-o", tmp_path / "a", "-k", "3")
    assert "run_retrieval" in done.output
    assert "print_retrieval_metrics" in done.output


def test_a_broken_akm_is_one_message(tmp_path):
    program = install(tmp_path / "bin", "silent")
    command = [sys.executable, "-c", "from akm_harbor.cli import main; main()", "memory", "probe", "demo-locomo"]
    done = subprocess.run(
        [*command, "-b", "akm", "--akm", str(program), "-o", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "akm" in done.stderr


def test_failed_questions_fail_the_command_and_stay_in_the_table(tmp_path):
    program = install(tmp_path / "bin", "contaminated")
    done = run(
        "probe", "demo-locomo", "-b", "akm:command=search", "--akm", program, "-o", tmp_path / "out", "--histories", "1"
    )
    assert done.exit_code == 1
    assert "12 of 12 questions failed" in done.output
    rows = read_frame(tmp_path / "out", "memory_trials")
    assert set(rows["error_class"]) == {"contamination"}
    assert json.loads(rows["backend_json"].iloc[0])["command"] == "search"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["probe", "demo-locomo"], "no place for the result"),
        (["probe", "-o", "x"], "no data"),
        (["probe", "demo-locomo", "-o", "x", "--ks", "a,b"], "no list of whole numbers"),
        (["probe", "locomo12", "-o", "x"], "no dataset is named"),
    ],
)
def test_usage_errors(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said):
        run(*arguments)
