import pytest

from akm_harbor.ab.arms import guess_baseline, load_trials, select_arm
from akm_harbor.errors import AkmHarborError, NotComparableError, UsageError

from .support import dataset, matrix, trial


@pytest.fixture
def trials(tmp_path):
    rows = [*matrix("control", [[1, 0], [0, 0]]), *matrix("akm-opencode", [[1, 1], [1, 0]], submission="Team__X")]
    return load_trials(dataset(tmp_path, rows))


def test_arm_by_name_or_by_another_column(trials):
    arm = select_arm(trials, "akm-opencode")
    assert (len(arm.attempts), arm.tasks, arm.n_set_aside) == (4, ["task-00", "task-01"], 0)
    assert len(select_arm(trials, "Team__X", "submission").attempts) == 4


@pytest.mark.parametrize(
    ("name", "by", "hint"),
    [
        ("contrl", "arm", "Did you mean 'control'"),
        ("AKM", "arm", "Did you mean 'akm-opencode'"),
        ("Team__X", "arm", "add `--by submission`"),
        ("zzz", "arm", "Known: akm-opencode, control"),
        ("control", "trial_id", "Use one of arm, job_name"),
    ],
)
def test_unknown_arm_lists_near_matches(trials, name, by, hint):
    with pytest.raises(UsageError) as caught:
        select_arm(trials, name, by)
    assert hint in str(caught.value)
    assert caught.value.exit_code == 2


def test_rows_that_are_no_attempt_are_set_aside(tmp_path):
    rows = [
        trial("a", "t", 0, 1.0),
        trial("a", "t", 1, None, status="superseded"),
        trial("a", "t", 2, None, status="install_only"),
        trial("b", "t", 0, None, status="install_only"),
    ]
    trials = load_trials(dataset(tmp_path, rows))
    assert (len(select_arm(trials, "a").attempts), select_arm(trials, "a").n_set_aside) == (1, 2)
    with pytest.raises(NotComparableError, match=r"arm 'b' has no attempt at a task \(1 install_only\)"):
        select_arm(trials, "b")


def test_tasks_pair_by_a_given_name_or_by_the_trial_name(tmp_path):
    rows = [trial("a", "bench/one", 0, 1.0), trial("b", "one", 0, 1.0), trial("b", "x", 1, 1.0, task_name=None)]
    found = load_trials(dataset(tmp_path, rows), {"bench/one": "one"})
    assert list(found["task"]) == ["one", "one", "x"]


def test_no_trial_at_all(tmp_path):
    with pytest.raises(AkmHarborError, match="has no trial"):
        load_trials(dataset(tmp_path, []))


def test_guess_baseline(tmp_path):
    def guess(name, *rows):
        (tmp_path / name).mkdir()
        return guess_baseline(load_trials(dataset(tmp_path / name, rows)))

    treated = trial("akm", "t", 0, 1.0, treatment_delivered=True)
    assert guess("one", treated) == "akm"
    assert guess("named", trial("control", "t", 0, 1.0), trial("other", "t", 0, 1.0)) == "control"
    assert guess("untreated", treated, trial("stock", "t", 0, 1.0)) == "stock"
    with pytest.raises(UsageError, match="not clear which arm"):
        guess("unclear", trial("x", "t", 0, 1.0), trial("y", "t", 0, 1.0))
