"""Prices before the first trial: arithmetic, sources, the cap, and how near a pilot comes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from akm_harbor.cli.app import app
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.resources import sample_jobs
from akm_harbor.study.cost import (
    Actual,
    Usage,
    actual_cost,
    compare,
    dollars,
    parse_tokens,
    predict,
    require_below,
    usage_of_pilot,
)
from akm_harbor.study.declaration import Judge, Price, find_study
from akm_harbor.study.prices import price_of
from akm_harbor.trials import collect

DEMO = find_study("demo")
ARMS = ("control", "oracle-context")


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = tmp_path_factory.mktemp("pilot") / "dataset"
    collect([sample_jobs()], dataset)
    return dataset


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pilot of three tasks, one attempt each: the first trial of each arm on each."""
    jobs = tmp_path_factory.mktemp("half")
    job = next(path for path in sample_jobs().iterdir() if path.is_dir())
    place = jobs / job.name
    place.mkdir()
    seen = set()
    for trial in sorted(job.iterdir()):
        if not trial.is_dir():
            (place / trial.name).write_bytes(trial.read_bytes())
            continue
        arm = json.loads((trial / "config.json").read_text())["agent"]["kwargs"]["arm"]
        task = trial.name.partition("__")[0]
        if task.startswith(("drillbit", "inkwell--new")) and (arm, task) not in seen:
            seen.add((arm, task))
            shutil.copytree(trial, place / trial.name)
    dataset = jobs / "dataset"
    collect([place], dataset)
    return dataset


def test_cached_tokens_are_part_of_the_input() -> None:
    price = Price(3.0, 0.3, 15.0, "here")
    assert price.dollars(1_000_000, 0, 0) == 3.0
    assert price.dollars(1_000_000, 1_000_000, 0) == pytest.approx(0.3)
    assert price.dollars(0, 0, 1_000_000) == 15.0
    assert price.dollars(1_000_000, 400_000, 100_000) == pytest.approx(1.8 + 0.12 + 1.5)


def test_prices_come_from_litellm_the_study_or_a_file(tmp_path: Path) -> None:
    known = price_of("anthropic/claude-sonnet-4-5")
    assert 0 < known.cache < known.input < known.output
    assert "LiteLLM" in known.source
    assert price_of("scripted/demo", DEMO.price) == DEMO.price
    file = tmp_path / "prices.toml"
    file.write_text('["scripted/demo"]\ninput = 2\noutput = 8\n')
    assert price_of("scripted/demo", DEMO.price, file) == Price(2, 2, 8, str(file))
    with pytest.raises(UsageError, match="no price is known for nobody/nothing"):
        price_of("nobody/nothing", None, file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[m]\ninput = 1\n", "needs input and output"),
        ("[m]\ninput = 1\noutput = 2\nouput = 3\n", "needs input and output"),
        ("[m]\ninput = -1\noutput = 2\n", "not negative"),
        ("m = 3\n", "needs input and output"),
        ("[m\n", "cannot be read as TOML"),
    ],
)
def test_a_price_file_that_cannot_be_meant(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        price_of("m", None, path)


def test_a_study_is_trials_times_price() -> None:
    usage = Usage(100_000, 0, 10_000)
    found = predict(DEMO, dict.fromkeys(ARMS, usage), "by hand")
    each = 0.1 * 1.0 + 0.01 * 4.0
    assert found.total == pytest.approx(2 * 12 * each)
    assert found.low is None
    judged = replace(DEMO, judge=Judge("claude-sonnet-4-5", 2, 1000, 100))
    extra = 24 * 2 * (1000 * 3 + 100 * 15) / 1e6
    assert predict(judged, dict.fromkeys(ARMS, usage), "").total == pytest.approx(found.total + extra)


def test_a_registry_of_unknown_size_has_no_price() -> None:
    study = replace(find_study("swebench-verified"), n_tasks=None)
    with pytest.raises(UsageError, match="how many tasks"):
        predict(study, dict.fromkeys(("control", "akm"), Usage(1, 0, 1)), "")


@pytest.mark.parametrize("text", ["1,2", "a,b,c", "10,20,5", "-1,0,0", "nan,0,0", "1,0,inf"])
def test_tokens_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError):
        parse_tokens(text)


def test_a_small_pilot_predicts_the_whole_study_within_15_percent(half: Path, pilot: Path) -> None:
    """Half of the tasks, one attempt of two: priced from tokens, and from recorded costs."""
    usage, notes = usage_of_pilot(half, ARMS, DEMO.model)
    assert {one.n_trials for one in usage.values()} == {3}
    assert notes == []
    actual = actual_cost(DEMO, pilot)
    assert actual.recorded
    assert sum(actual.trials.values()) == 24
    by_cost = predict(DEMO, usage, "half")
    by_tokens = predict(DEMO, {arm: replace(one, dollars=None) for arm, one in usage.items()}, "half")
    for found in (by_cost, by_tokens):
        assert found.total == pytest.approx(actual.dollars, rel=0.15)
    assert by_cost.low is not None
    assert by_cost.high is not None
    assert by_cost.low < actual.dollars < by_cost.high


def test_another_model_is_priced_from_tokens_and_said_so(half: Path) -> None:
    usage, notes = usage_of_pilot(half, ["control", "akm"], "openai/gpt-5")
    assert {one.dollars for one in usage.values()} == {None}
    assert any("the pilot ran scripted/demo" in note for note in notes)
    assert any("no arm akm" in note for note in notes)


def test_the_cap_names_both_numbers() -> None:
    found = predict(DEMO, dict.fromkeys(ARMS, Usage(1e6, 0, 1e6)), "")
    require_below(found, found.total)
    with pytest.raises(AkmHarborError, match=r"predicted to cost \$120\.00, and the cap is \$5\.00: nothing was run"):
        require_below(found, 5)


def test_the_command_stops_at_the_cap() -> None:
    run = CliRunner().invoke
    common = ["arms", "cost", "demo", "--tokens", "20000,12000,50"]
    assert run(app, [*common, "--cap", "1"]).exit_code == 0
    stopped = run(app, [*common, "--cap", "0.1"])
    assert isinstance(stopped.exception, AkmHarborError)
    assert "nothing was run" in str(stopped.exception)
    assert json.loads(run(app, [*common, "--json"]).stdout)["total"] == pytest.approx(0.2256)
    assert "nothing tells the tokens" in str(run(app, ["arms", "cost", "demo"]).exception)


def test_predicted_against_actual_in_words() -> None:
    actual = Actual({"control": 12}, 2, 1.1, recorded=False)
    text = compare(1.0, actual)
    assert text.startswith("cost: predicted $1.00, actual $1.10 (+10.0%), priced from tokens; 2 trials without")
    assert "not predicted" in compare(None, actual)
    assert dollars(0.01234) == "$0.0123"
