import json

from akm_harbor.ab import trace as module
from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.trace import trace, writes

from .support import dataset, matrix

GOLD = "knowledge/line-format"


def call(index, tool, arguments, **over):
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"index": index, "tool": tool, "arguments_json": text, "status": "completed", "output_head": "out", **over}


CALLS = [
    call(0, "bash", {"command": "ls /app"}),
    call(1, "akm_search", {"query": "line format"}, akm_verb="search", akm_refs=["skills/x", GOLD], gold_rank=2),
    call(2, "akm_show", {"ref": GOLD}, akm_verb="show", akm_refs=[GOLD], gold_rank=1),
    call(3, "edit", {"filePath": "/app/a.cfg", "oldString": "a\nb\nc", "newString": "a\nB\nc"}),
    call(4, "write", {"filePath": "/app/b.cfg", "content": "one\ntwo\n"}),
    call(5, "bash", {"command": "make check"}, status="error", error="exit 2"),
    call(6, "akm_search", {"query": "again"}, akm_verb="search", akm_refs=[GOLD], gold_rank=1),
]


def test_deciding_steps_are_marked_in_the_order_they_happened():
    steps = trace(CALLS)
    assert [s.marks for s in steps] == [
        (),
        ("first look into the bundle", "gold at rank 2"),
        ("opened the gold asset",),
        ("first write",),
        (),
        ("failed",),
        ("gold at rank 1",),
    ]
    assert [s.text for s in steps] == [
        "ls /app",
        "line format",
        GOLD,
        "/app/a.cfg",
        "/app/b.cfg",
        "make check",
        "again",
    ]
    assert steps[3].diff == ("@@ -1,3 +1,3 @@", " a", "-b", "+B", " c")
    assert steps[4].diff == ("+one", "+two")


def test_arguments_that_were_cut_are_shown_as_they_are():
    (step,) = trace([call(0, "write", '{"content": "never closed')])
    assert step.text == '{"content": "never closed'
    assert step.diff == ()
    (listed,) = trace([call(0, "odd", "[1, 2]")])
    assert listed.text == "[1, 2]"


def test_shell_writes_are_told_from_reads():
    for command in ("cat > a <<'E'\nx\nE", "echo x >> a", "printf x | tee a", "sed -i s/a/b/ f", "cp a b"):
        assert writes("bash", {"command": command}), command
    for command in ("ls", "grep x a 2>&1", "test 3 -gt 2", "cat a | head"):
        assert not writes("bash", {"command": command}), command


def rows_of(path, **extra):
    return [{"trial_id": "x", "trial_path": path, "root": "jobs", **row} for row in extra["calls"]]


def test_a_report_leads_to_steps_and_to_the_verifiers_words(tmp_path):
    path = "b/task-01__0000000"
    common = {"trial_id": "x", "root": "jobs", "trial_path": path, "message": "no port"}
    statuses = enumerate(["passed", "failed", "skipped"])
    failed = [{**common, "index": i, "name": f"t{i}", "status": s} for i, s in statuses]
    elsewhere = [{**row, "root": "other jobs"} for row in rows_of(path, calls=CALLS)]
    rows = [*matrix("a", [[1], [0]]), *matrix("b", [[1], [1]])]
    data = dataset(tmp_path, rows, tool_calls=[*elsewhere, *rows_of(path, calls=CALLS)[::-1]], tests=failed)
    found = {t.task: t for t in analyse(data, "a", "b").tasks}
    (attempt,) = found["task-01"].treatment
    assert [s.index for s in attempt.steps] == list(range(7))
    assert [(t.name, t.status, t.message) for t in attempt.failed_tests] == [("t1", "failed", "no port")]
    assert found["task-00"].treatment[0].steps == ()


def test_a_page_stays_within_its_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STEPS_A_TRIAL", 3)
    monkeypatch.setattr(module, "STEPS_A_REPORT", 4)
    rows = [*matrix("a", [[1], [0]]), *matrix("b", [[1], [1]])]
    calls = [r for t in ("a/task-00", "b/task-00", "b/task-01") for r in rows_of(f"{t}__0000000", calls=CALLS)]
    found = {t.task: t for t in analyse(dataset(tmp_path, rows, tool_calls=calls), "a", "b").tasks}
    first = found["task-01"].treatment[0]  # the task that differs comes first, marked steps before others
    assert ([s.index for s in first.steps], first.steps_left_out) == ([1, 2, 3], 4)
    assert [found["task-00"].baseline[0].steps_left_out, found["task-00"].treatment[0].steps_left_out] == [6, 7]
