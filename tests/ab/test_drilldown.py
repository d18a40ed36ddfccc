"""From a task down to its trials."""

from akm_harbor.ab.drilldown import PRINTED_TASKS, printed, stretches
from akm_harbor.ab.result import Step, TaskRow


def step(index, tool="bash", marks=(), diff=()):
    return Step(index, tool, f"text {index}", tuple(marks), tuple(diff), "out")


def test_what_decided_is_told_and_the_rest_folded_in_its_place():
    steps = [
        step(0, "read"),
        step(1, "read"),
        step(2, "akm_search", marks=["gold at rank 2"]),
        step(3, "bash"),
        step(4, "write", diff=["+a"]),
        step(5, "read"),
        step(6, "bash"),
        step(7, "read"),
    ]
    told = stretches(steps, deciding={6})
    assert [(s.told, [x.index for x in s.steps], s.tools) for s in told] == [
        (False, [0, 1], "read (2)"),
        (True, [2], "akm_search"),
        (False, [3], "bash"),
        (True, [4], "write"),
        (False, [5], "read"),
        (True, [6], "bash"),
        (False, [7], "read"),
    ]
    assert [x for s in told for x in s.steps] == steps
    assert stretches([]) == ()


def test_paper_gets_the_tasks_that_differ_most():
    tasks = [TaskRow(f"t{i}", (), (), 0, 0, d, None, None) for i, d in enumerate([0.1] * 20 + [-0.9, None])]
    found = printed(tasks)
    assert len(found) == PRINTED_TASKS
    assert "t20" in found
    assert "t21" not in found
    assert printed(tasks[:3]) == {"t0", "t1", "t2"}
