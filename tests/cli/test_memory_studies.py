"""The commands with a model in them, as a person types them, against the double."""

import pytest
import yaml
from typer.testing import CliRunner

from akm_harbor.cli.memory import app
from akm_harbor.errors import NotComparableError, UsageError
from akm_harbor.memory.answer import book, caller
from akm_harbor.memory.answer.gates import GateError
from akm_harbor.memory.answer.result import read_study
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import find_source
from akm_harbor.memory.datasets.store import Store
from tests.memory.answer.conftest import InProcessKeeper
from tests.memory.answer.model_double import Double
from tests.memory.answer.support import declare, script_for

runner = CliRunner()
OPEN = {"gates": {"ceiling": 0.0, "retrieval": 0.0}, "arms": ["oracle", "bm25"], "sample": 6}
OWN = {
    "scorer": {"name": "akm-harbor-judge"},
    "judge": {"model": "openai/double-judge", "probe": 3, "repeats": 2, "seed": 1},
}


@pytest.fixture(autouse=True)
def in_process(tmp_path, monkeypatch):
    def complete(model, messages, settings, *, api_base, api_key, timeout_s):
        return Double.running[api_base].direct(model, messages, settings)

    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOUBLE_KEY", "k")
    monkeypatch.setattr(book, "Keeper", InProcessKeeper)
    monkeypatch.setattr(caller, "complete", complete)


@pytest.fixture
def double(tmp_path):
    store = Store(convert(find_source("demo-locomo").path, tmp_path / "locomo").path)
    with Double(script_for(store, judge=("strict", "prose"))) as running:
        yield running


def run(*arguments, catch=False):
    return runner.invoke(app, [str(a) for a in arguments], catch_exceptions=catch)


@pytest.mark.parametrize("command", ["run", "judge", "score", "verify", "agreement"])
def test_every_command_has_help_with_an_example(command):
    done = run(command, "--help")
    assert done.exit_code == 0
    assert f"akm-harbor memory {command}" in done.output


def test_a_dry_run_prints_calls_and_price_and_calls_nothing(double, tmp_path):
    done = run("run", "-c", declare(tmp_path, double.url, **OPEN, **OWN), "-o", tmp_path / "out", "--dry-run")
    assert done.exit_code == 0
    assert "| 6 | 0 |" in done.output
    assert "reader: oracle, as-is" in done.output
    assert "no cap" in done.output
    assert not double.requests
    assert not (tmp_path / "out").exists()


def test_a_study_runs_and_is_scored_verified_and_judged_again(double, tmp_path):
    path = declare(tmp_path, double.url, **OPEN, **OWN)
    done = run("run", "-c", path, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "undecided: " in done.output
    assert "24 rows" in done.output
    done = run("verify", tmp_path / "out")
    assert done.exit_code == 0
    assert "verified: 24 rows" in done.output
    done = run("score", tmp_path / "out", "--variance", "--types")
    assert done.exit_code == 0
    for part in (
        "| oracle | as-is | all |",
        "type:single-hop",
        "scorer akm-harbor-judge/1",
        "category 5 include",
        "made-up",
    ):
        assert part in done.output
    study = yaml.safe_load(path.read_text())
    study["judge"]["model"] = "openai/other-judge"
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(study))
    done = run("judge", tmp_path / "out", "-c", tmp_path / "other.yaml", "-o", tmp_path / "again")
    assert done.exit_code == 0, done.output
    assert "judge calls to make, 0 answered before" in done.output
    done = run("agreement", tmp_path / "out", tmp_path / "again")
    assert done.exit_code == 0
    assert "Cohen's kappa 1.000" in done.output
    assert "undecided" in done.output
    with pytest.raises(NotComparableError, match="judge_model") as caught:
        run("score", tmp_path / "out", tmp_path / "again")
    assert caught.value.exit_code == 4


def test_two_results_of_one_protocol_stand_in_one_table(double, tmp_path):
    run("run", "-c", declare(tmp_path, double.url, **OPEN), "-o", tmp_path / "a")
    run("run", "-c", declare(tmp_path, double.url, **{**OPEN, "arms": ["oracle", "full"]}), "-o", tmp_path / "b")
    done = run("score", tmp_path / "a", tmp_path / "b")
    assert done.exit_code == 0
    assert "| a | bm25 |" in done.output
    assert "| b | full |" in done.output


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"topk": 4}, "topk"),
        ({"seed": 5}, "seed"),
        ({"category_5": "exclude"}, "category_5"),
        ({"granularity": "session"}, "granularity"),
        ({"order": "rank"}, "order"),
        ({"reader": {"model": "openai/other"}}, "reader_model"),
        ({"reader": {"model": "openai/double-reader", "max_tokens": 9}}, "reader_settings"),
    ],
)
def test_a_number_of_another_protocol_is_refused_a_place(double, tmp_path, changes, field):
    run("run", "-c", declare(tmp_path, double.url, **OPEN), "-o", tmp_path / "a")
    run("run", "-c", declare(tmp_path, double.url, **{**OPEN, **changes}), "-o", tmp_path / "b")
    with pytest.raises(NotComparableError, match=field):
        run("score", tmp_path / "a", tmp_path / "b")


def test_verify_says_what_differs_and_fails(double, tmp_path):
    run("run", "-c", declare(tmp_path, double.url, **OPEN), "-o", tmp_path / "out")
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"topk": 3', '"topk": 30'))
    done = run("verify", tmp_path / "out")
    assert done.exit_code == 3
    assert "manifest: protocol as-is: id is" in done.output


def test_a_shut_gate_fails_and_a_waiver_goes_on(double, tmp_path):
    path = declare(tmp_path, double.url, **{**OPEN, "gates": {"ceiling": 0.99}})
    with pytest.raises(GateError):
        run("run", "-c", path, "-o", tmp_path / "out")
    assert read_study(tmp_path / "out").manifest["complete"] is False
    done = run("run", "-c", path, "-o", tmp_path / "out", "--waive", "oracle-ceiling")
    assert done.exit_code == 0
    assert "WAIVED: the oracle-ceiling is shut" in done.output
    assert "WAIVED: oracle-ceiling" in run("score", tmp_path / "out").output


def test_an_incomplete_study_fails_and_says_why(double, tmp_path):
    double.script.served = "somebody-else"
    done = run("run", "-c", declare(tmp_path, double.url, **OPEN), "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "incomplete (other-model" in done.output


def test_without_an_output_it_is_a_usage_error(tmp_path, double):
    with pytest.raises(UsageError, match="no place for the result"):
        run("run", "-c", declare(tmp_path, double.url))
