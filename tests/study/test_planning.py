"""Planning: the published table to the printed digit, answers that fit each other, a pilot's own variance."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from akm_harbor.cli.app import app
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.resources import sample_jobs
from akm_harbor.stats.power import REFERENCE, Components
from akm_harbor.study.planning import (
    Goal,
    affordable,
    attempts_needed,
    best,
    components_of_pilot,
    design,
    table,
    tasks_needed,
)
from akm_harbor.trials import collect

# 80% power, two-sided 5%, normal formula, from 72 public submissions; printed to three digits.
PRINTED = {
    19: (0.299, 0.218, 0.198, 0.182),
    27: (0.250, 0.183, 0.166, 0.153),
    46: (0.192, 0.140, 0.128, 0.117),
    89: (0.138, 0.101, 0.092, 0.084),
    500: (0.058, 0.043, 0.039, 0.035),
}


def test_the_table_agrees_with_the_published_one_to_the_printed_digit() -> None:
    found = {(d.tasks, d.attempts): d.normal for d in table(REFERENCE, Goal())}
    for n, row in PRINTED.items():
        for k, value in zip((1, 3, 5, 10), row, strict=True):
            normal = found[n, k]
            assert normal is not None
            assert round(normal, 3) == value, (n, k)


def test_the_command_prints_that_table() -> None:
    result = CliRunner().invoke(app, ["plan"])
    assert result.exit_code == 0
    block = result.stdout.partition("normal formula:\n")[2].splitlines()[1:6]
    assert [line.split() for line in block] == [
        [str(n), *(f"{value:.3f}"[1:] for value in row)] for n, row in PRINTED.items()
    ]


def test_the_t_distribution_asks_for_more_and_never_less() -> None:
    for one in table(REFERENCE, Goal()):
        assert one.student is not None
        assert one.normal is not None
        assert one.normal < one.student < 1.1 * one.normal


@settings(deadline=None, max_examples=15)
@given(
    difference=st.floats(0.02, 0.9),
    k=st.integers(1, 10),
    between=st.floats(0, 0.3),
    within=st.floats(0.01, 0.25),
    power=st.floats(0.5, 0.95),
)
def test_the_tasks_needed_are_the_fewest(
    difference: float, k: int, between: float, within: float, power: float
) -> None:
    components, goal = Components(between, within, within, "made up"), Goal(0.05, power)
    needed = tasks_needed(difference, k, components, goal)
    enough = design(needed.student, k, components, goal).student
    assert enough is not None
    assert enough <= difference
    if needed.student > 2:
        short = design(needed.student - 1, k, components, goal).student
        assert short is not None
        assert short > difference
    exact = design(needed.normal, k, components, goal).normal
    assert exact is not None
    assert exact <= difference + 1e-9


def test_attempts_wear_down_only_what_is_inside_tasks() -> None:
    goal = Goal()
    assert attempts_needed(0.1, 46, REFERENCE, goal) is None
    k = attempts_needed(0.2, 19, REFERENCE, goal)
    assert k is not None
    seen = [design(19, n, REFERENCE, goal).student or math.inf for n in (k - 1, k)]
    assert seen[0] > 0.2 >= seen[1]


def test_a_budget_buys_designs_within_it() -> None:
    found = affordable(100, 0.2, REFERENCE, Goal(), most_tasks=89)
    assert [d.tasks for d in found] == [89, 83, 50, 25]
    assert all(d.trials * 0.2 <= 100 for d in found)
    assert best(found).attempts == 3
    with pytest.raises(UsageError, match="does not pay for two tasks"):
        affordable(1, 1, REFERENCE, Goal())


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = tmp_path_factory.mktemp("pilot") / "dataset"
    collect([sample_jobs()], dataset)
    return dataset


def test_a_pilot_gives_its_own_variance(pilot: Path) -> None:
    found = components_of_pilot(pilot, "control", "oracle-context")
    assert "6 tasks, 24 trials" in found.source
    assert found.between >= 0
    assert found.within_baseline > 0
    assert "plan with a margin" in " ".join(found.notes)
    assert components_of_pilot(pilot) == found
    with pytest.raises(AkmHarborError, match="no arm"):
        components_of_pilot(pilot, "control", "nobody")


def test_page_and_json(tmp_path: Path, pilot: Path) -> None:
    command = ["plan", "--pilot", str(pilot), "-d", "0.3", "-k", "2", "--json", "-o", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed == json.loads((tmp_path / "plan.json").read_text())
    assert printed["asked"][0]["attempts"] == 2
    assert printed["asked"][0]["student"] <= 0.3
    html = (tmp_path / "plan.html").read_text()
    assert "the pilot: control and oracle-context" in html
    assert html.count("<svg") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-d", "0"], "makes no sense"),
        (["-d", "1.5"], "makes no sense"),
        (["--power", "1"], "makes no sense"),
        (["--alpha", "0.9"], "makes no sense"),
        (["--budget", "10"], "go together"),
        (["--budget", "-1", "--trial-cost", "1"], "above zero"),
        (["-b", "control"], "name arms of a pilot"),
        (["--study", "nothing"], "no study"),
        (["-d", "0.0001"], "needs more than"),
    ],
)
def test_questions_that_cannot_be_meant(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["plan", *arguments])
    assert result.exit_code == 1
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def test_a_study_brings_its_size() -> None:
    result = CliRunner().invoke(app, ["plan", "--study", "akm-tasks-eval"])
    assert "19 tasks with 5 attempts, 190 trials" in result.stdout
