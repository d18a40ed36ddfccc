import pytest

from akm_harbor.ab.arms import load_trials, select_arm
from akm_harbor.ab.comparability import comparability
from akm_harbor.errors import UsageError

from .support import START, dataset, matrix

REWARDS = [[1, 0], [0, 1]]


@pytest.fixture
def compare(tmp_path):
    def run(a=None, b=None, **options):
        rows = [*(a or matrix("a", REWARDS)), *(b or matrix("b", REWARDS))]
        trials = load_trials(dataset(tmp_path, rows))
        found = comparability(select_arm(trials, "a"), select_arm(trials, "b"), **options)
        return {c.name: c for c in found}

    return run


def test_equal_arms_have_nothing_to_report(compare):
    found = compare()
    assert {c.grade for c in found.values() if c.compared} == {"ok"}
    assert not found["toolchain"].compared  # never recorded here


@pytest.mark.parametrize(
    ("column", "value", "name", "grade"),
    [
        ("model_name", "other/model", "model", "fatal"),
        ("timeout_multiplier", 0.25, "timeout-multiplier", "fatal"),
        ("agent_timeout_seconds", 900.0, "agent-timeout", "fatal"),
        ("task_digest", "sha256:other", "task-digests", "fatal"),
        ("harbor_version", "0.22.0", "harbor", "caveat"),
        ("environment", "daytona", "environment", "caveat"),
        ("max_retries", 3, "retries", "caveat"),
        ("agent_version", "1.19.0", "agent-version", "note"),
        ("token_source", "opencode.txt", "tokens", "note"),
        ("started_at", START.replace(month=3), "dates", "caveat"),
        ("n_cache_tokens", 700, "cache", "caveat"),
    ],
)
def test_each_difference_has_its_grade(compare, column, value, name, grade):
    found = compare(b=matrix("b", REWARDS, **{column: value}))
    assert found[name].grade == grade
    assert found[name].detail
    assert [c.name for c in found.values()].index(name) < 3  # worst first
    assert {c.name for c in found.values() if c.grade != "ok" and c.compared} == {name}


def test_overrides_recorded_in_one_arm_only_are_not_compared(compare):
    found = compare(b=matrix("b", REWARDS, resources_json='{"cpus": 8}'))
    assert (found["resources"].grade, found["resources"].compared) == ("note", False)


def test_task_sets_and_unequal_attempts(compare):
    found = compare(b=matrix("b", [[1, 0, 1], [0, 1, 0], [1, 1, 1]]))
    assert found["tasks"].grade == found["attempts"].grade == "caveat"
    assert "only b: task-02" in found["tasks"].detail


def test_prefixed_task_names_are_noticed(compare):
    found = compare(b=[{**r, "task_name": f"bench/{r['task_name']}"} for r in matrix("b", [*REWARDS, [1, 1]])])
    assert "2 of them differ only by a prefix: see --strip-prefix." in found["tasks"].detail


def test_old_checksums_serve_where_digests_lack(compare):
    a = matrix("a", REWARDS, task_digest=None, task_checksum="x")
    b = matrix("b", REWARDS, task_digest=None, task_checksum="y")
    found = compare(a, b)
    assert found["task-digests"].grade == "fatal"
    assert "2 of 2 shared tasks differ" in found["task-digests"].detail


def test_strict_and_accept(compare):
    b = matrix("b", REWARDS, harbor_version="0.22.0", model_name="other/model")
    assert compare(b=b, strict=True)["harbor"].grade == "fatal"
    accepted = compare(b=b, accept=("model",))["model"]
    assert (accepted.grade, accepted.accepted) == ("caveat", True)
    with pytest.raises(UsageError, match="no comparability check 'modle'"):
        compare(accept=("modle",))
