"""Each rule of the linter is silent on a sound corpus and speaks on a seeded defect."""

import json
import shutil

import pytest

from akm_harbor.corpus import lint, rig, rules_run
from akm_harbor.corpus.registry import register
from akm_harbor.corpus.sync import sync
from akm_harbor.corpus.task import read_task
from akm_harbor.errors import AkmHarborError

from .support import ASSET, change, fake_akm, small_corpus, write

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


AKM: dict[str, str] = {}


def found(tasks, *rules):
    """The rules that speak, each with what it says."""
    corpus, findings = lint.read_corpus(tasks)
    corpus.plan.akm = AKM.get("command")
    findings += lint.run_rules(corpus, lint.select({"static", "run", "akm"}, rules))
    return {(finding.rule, finding.detail) for finding in findings}


def says(tasks, rule, text):
    """Whether the rule speaks, in these words."""
    return any(name == rule and text in detail for name, detail in found(tasks, rule))


@pytest.fixture
def tasks(tmp_path):
    return small_corpus(tmp_path, "works--gauge", "works--valve")


@pytest.fixture
def task(tasks):
    # the other task is there so that rules about several have something to look at
    shutil.rmtree(tasks / "works--valve")
    return tasks / "works--gauge"


@pytest.mark.sandbox
def test_a_sound_corpus_is_silent(task):
    assert {name for name, _ in found(task.parent)} == set()


STATIC = {
    "unknown-key": (lambda t: change(t / "task.toml", ("sec = 300.0\n\n[v", "secs = 300.0\n\n[v")), "timeout_secs"),
    "name-mismatch": (lambda t: change(t / "task.toml", ("akm-harbor/works--gauge", "akm-harbor/gauge")), "the folder"),
    "metadata-incomplete": (lambda t: change(t / "task.toml", ('slice = "train"', 'slice = "test"')), "not one of"),
    "gold-unresolved": (lambda t: change(t / "task.toml", ("knowledge/gauges", "knowledge/gauge")), "holds no asset"),
    "loaded-by-agents": (lambda t: write(t / "environment/workspace/AGENTS.md", "x"), "AGENTS.md"),
    "answer-in-image": (
        lambda t: change(t / "environment/Dockerfile", ("COPY workspace/ /app/", "COPY . /app/")),
        "more than workspace/",
    ),
    "stray-file": (lambda t: write(t / "tests/__pycache__/x.pyc", "x"), "a leftover"),
    "generated-stale": (lambda t: change(t / "tests/akm_verify.py", ("RIGHT = 0", "RIGHT = 1")), "not what sync"),
    "verifier-mismatch": (lambda t: change(t / "task.toml", ('"script"', '"pytest"')), "files are missing"),
    "solution-missing": (lambda t: (t / "solution/solve.sh").unlink(), "no solution"),
    "review-pending": (lambda t: change(t / "task.toml", ("withheld", 'review = ["x"]\nwithheld')), "to decide"),
    "instruction-empty": (lambda t: write(t / "instruction.md", "Do it.\n"), "/app"),
    "answer-leaks": (lambda t: write(t / "environment/workspace/notes.txt", "a gauge is ready\n"), "`ready`"),
    "withheld-not-in-bundle": (lambda t: change(t / "task.toml", ('["ready"]', '["zeroed"]')), "`zeroed`"),
    "akm-hint": (lambda t: write(t / "environment/workspace/notes.txt", "See the gauge skill.\n"), "'skill'"),
    "bundle-names-instance": (
        lambda t: (
            write(t / "instruction.md", "In /app, look at `gauge-seven`.\n"),
            write(t / "../../agents/bundles/works/knowledge/more.md", ASSET + "\nLike `gauge-seven`.\n"),
        ),
        "`gauge-seven`",
    ),
    "bundle-holds-answer": (
        lambda t: (
            write(t / "solution/solve.sh", "#!/bin/sh\necho ready set go >/app/answer.txt\n"),
            write(t / "../../agents/bundles/works/knowledge/m.md", f"{ASSET}\necho ready set go >/app/answer.txt\n"),
        ),
        "a line of works--gauge's solution",
    ),
    "asset-unindexable": (
        lambda t: write(t / "../../agents/bundles/works/knowledge/bare.md", "# no frontmatter\n"),
        "no frontmatter",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", STATIC)
def test_a_seeded_defect_is_found(task, rule):
    seed, words = STATIC[rule]
    assert not found(task.parent, rule)
    seed(task)
    assert says(task.parent, rule, words)


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda t: write(t / "task.toml", "not toml ["), "not valid TOML"),
        (lambda t: (t / "task.toml").unlink(), "cannot be read"),
        (lambda t: change(t / "task.toml", ("timeout_sec = 300.0", 'timeout_sec = "long"')), "ValidationError"),
        (lambda t: (t / "tests/test.sh").unlink(), "test.sh"),
        (lambda t: (t / "instruction.md").unlink(), "instruction.md"),
    ],
)
def test_what_harbor_would_drop_in_silence(tasks, break_it, words):
    assert not found(tasks, "harbor-refuses")
    break_it(tasks / "works--gauge")
    assert says(tasks, "harbor-refuses", words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('bundle = "works"\n', "", "`bundle` is missing"),
        ('withheld = ["ready"]\n', "", "needs `withheld`"),
        ('domain = "works"', 'domain = "mill"', "the folder's is"),
        ('difficulty = "easy"', 'difficulty = "easy"\ncolour = "red"', "`colour` is not a key"),
        ('withheld = ["ready"]', "withheld = [1]", "not a list of strings"),
        ('gold_ref = "knowledge/gauges"\n', "", "`gold_ref` is missing"),
        ('gold_ref = "knowledge/gauges"', 'gold_ref = "knowledge/gauges"\nabstention = true', "has no `gold_ref`"),
    ],
)
def test_metadata(task, old, new, words):
    change(task / "task.toml", (old, new))
    assert says(task.parent, "metadata-incomplete", words)


def test_more_ways_to_be_found(task):
    change(task / "task.toml", ('bundle = "works"', 'bundle = "../works"'))
    assert says(task.parent, "gold-unresolved", "no bundle")
    (task / "tests" / "link").symlink_to("/etc/passwd")
    assert says(task.parent, "stray-file", "a link")
    write(task / "environment/workspace/solve.sh", "echo\n")
    assert says(task.parent, "answer-in-image", "in the image")
    write(task / "instruction.md", "Write /app/opencode.json.\n")
    assert says(task.parent, "loaded-by-agents", "opencode.json")
    change(task / "task.toml", ("withheld", 'workflows = ["no-such"]\nwithheld'))
    assert says(task.parent, "generated-stale", "no workflow is called")


def test_names_and_solutions_are_used_once(tasks):
    assert says(tasks, "slice-overlap", "works--gauge, works--valve")
    write(tasks / "works--valve/solution/solve.sh", "#!/bin/sh\necho ready | cat >/app/answer.txt\n")
    assert not found(tasks, "slice-overlap")
    change(tasks / "works--valve/task.toml", ("akm-harbor/works--valve", "akm-harbor/works--gauge"))
    assert says(tasks, "name-mismatch", "also that of")


def test_a_local_task_gives_no_hint_and_ships_the_public_default(tmp_path):
    tasks = small_corpus(tmp_path, knowledge="local")
    task = tasks / "works--gauge"
    assert says(tasks, "control-missing", "public-default")
    write(task / "solution/wrong/public-default.sh", "#!/bin/sh\necho idle >/app/answer.txt\n")
    assert not found(tasks, "control-missing", "rule-hint")
    write(task / "instruction.md", "Write /app/answer.txt as our naming convention asks.\n")
    assert says(tasks, "rule-hint", "'our naming'")


def test_a_released_version_is_frozen(tasks):
    register(tasks, [read_task(p) for p in sorted(tasks.iterdir())], "1.0")
    assert not found(tasks, "registry-stale")
    write(tasks / "works--gauge/instruction.md", "Write /app/answer.txt, please.\n")
    assert says(tasks, "registry-stale", "works--gauge has changed since its release")


def test_rank_of_the_gold_asset(task, tmp_path, monkeypatch):
    def answers(*refs):
        monkeypatch.setitem(AKM, "command", fake_akm(tmp_path / "akm", list(refs)))

    answers("x/1", "knowledge/gauges")
    assert not found(task.parent, "gold-hard-to-find")
    many = [f"knowledge/other-{n}" for n in range(7)]
    answers(*many, "knowledge/gauges")
    assert says(task.parent, "gold-hard-to-find", "at rank 8")
    answers(*many)
    assert says(task.parent, "gold-hard-to-find", "not among the first 10")
    write(tmp_path / "akm", "#!/bin/sh\necho broken >&2\nexit 70\n")
    with pytest.raises(AkmHarborError, match="akm index"):
        found(task.parent, "gold-hard-to-find")


RUN = {
    "pristine-passes": (lambda t: write(t / "environment/workspace/answer.txt", "ready\n"), "scores 1"),
    "oracle-fails": (lambda t: write(t / "solution/solve.sh", "#!/bin/sh\necho busy >/app/answer.txt\n"), "scores 0"),
    "mutant-passes": (
        lambda t: write(t / "tests/verify.sh", "#!/bin/sh\ngrep -q read /app/answer.txt 2>/dev/null || exit 1\n"),
        "`ready` -> `readyx`",
    ),
    "control-passes": (
        lambda t: write(t / "solution/wrong/again.sh", "#!/bin/sh\necho ready >/app/answer.txt\n"),
        "scores 1",
    ),
    "variant-fails": (
        lambda t: write(t / "solution/variants/other.sh", "#!/bin/sh\necho READY >/app/answer.txt\n"),
        "scores 0",
    ),
    "not-derivable": (
        lambda t: (
            write(t / "solution/solve.sh", "#!/bin/sh\necho ready-7 >/app/answer.txt\n"),
            write(t / "tests/wanted.txt", "ready-7\n"),
        ),
        "`ready-7`",
    ),
}  # fmt: skip


@pytest.mark.sandbox
@pytest.mark.parametrize("rule", RUN)
def test_a_seeded_defect_is_found_by_running(task, rule):
    # that a sound task is silent is tried above, once for all rules
    assert rig.why_not() is None
    seed, words = RUN[rule]
    seed(task)
    assert says(task.parent, rule, words)


@pytest.mark.sandbox
def test_broken_solutions_and_verifiers_are_no_zero(task):
    write(task / "solution/solve.sh", "#!/bin/sh\nexit 3\n")
    assert says(task.parent, "oracle-fails", "exited with 3")
    write(task / "solution/solve.sh", "#!/bin/sh\necho ready >/app/answer.txt\n")
    write(task / "tests/verify.sh", "#!/bin/sh\nno-such-program\n")
    assert says(task.parent, "oracle-fails", "scores None")


@pytest.mark.sandbox
def test_a_near_miss_may_be_right_for_a_reason(task):
    write(task / "tests/verify.sh", "#!/bin/sh\ngrep -qx 'ready.\\?' /app/answer.txt 2>/dev/null || exit 1\n")
    assert says(task.parent, "mutant-passes", "readyx")
    excuse = '[[mutant]]\nfile = "answer.txt"\nnow = "readyx"\nwhy = "a mark may follow"\n'
    write(task / "solution/equivalent.toml", excuse)
    assert not found(task.parent, "mutant-passes")
    (tried,) = rules_run.try_all(lint.read_corpus(task.parent)[0])
    assert [why for _, why in tried.excused] == ["a mark may follow"]


def test_every_rule_is_tried_here():
    here = {"harbor-refuses", "slice-overlap", "control-missing", "rule-hint", "registry-stale", "gold-hard-to-find"}
    assert {one.id for one in lint.select({"static", "run", "akm"})} == set(STATIC) | set(RUN) | here


def test_rules_are_chosen_by_name():
    assert [one.id for one in lint.select({"static"}, only=["akm-hint"])] == ["akm-hint"]
    assert "akm-hint" not in {one.id for one in lint.select({"static"}, ignore=["akm-hint"])}
    with pytest.raises(AkmHarborError, match="no rule is called nonsense"):
        lint.select({"static"}, only=["nonsense"])


def test_the_report_names_file_rule_reason_and_cure(task):
    write(task / "environment/workspace/notes.txt", "See the gauge skill.\n")
    corpus, _ = lint.read_corpus(task.parent)
    text = lint.report(list(lint.run_rules(corpus, lint.select({"static"}))), task.parent)
    assert "works--gauge/environment/workspace/notes.txt: akm-hint: it says 'skill'" in text
    assert "why:" in text
    assert "mend:" in text


def test_one_task_alone_and_nothing_at_all(task, tmp_path):
    static = [one.id for one in lint.select({"static"})]
    assert found(task, *static) == found(task.parent, *static) == set()
    with pytest.raises(AkmHarborError, match="no such folder"):
        lint.read_corpus(tmp_path / "none")
    (tmp_path / "bare").mkdir()
    with pytest.raises(AkmHarborError, match="no task folder"):
        lint.read_corpus(tmp_path / "bare")


def test_generated_files_are_synced(task):
    write(task / "tests/akm_verify.py", "old")
    assert [p.name for p in sync([read_task(task)], check=True)] == ["akm_verify.py"]
    assert (task / "tests/akm_verify.py").read_text() == "old"
    sync([read_task(task)])
    assert sync([read_task(task)], check=True) == []
    change(task / "task.toml", ("withheld", 'workflows = ["lookup-before-write"]\nwithheld'))
    sync([read_task(task)])
    plan = json.loads((task / "tests/compliance.json").read_text())
    assert plan["task"] == {"gold_ref": "knowledge/gauges", "abstention": False}
    assert [one["id"] for one in plan["workflows"]] == ["lookup-before-write"]
