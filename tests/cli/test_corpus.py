"""`akm-harbor corpus ...`: what it prints and how it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

HARBOR = Path(sys.executable).parent / "akm-harbor"
ASSET = "---\ndescription: How gauges are read\ntags: [gauge]\n---\n# Gauges\n"


def corpus(*arguments, cwd):
    return subprocess.run(
        [HARBOR, "corpus", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )  # fmt: skip


@pytest.fixture
def place(tmp_path):
    asset = tmp_path / "agents/bundles/works/knowledge/gauges.md"
    asset.parent.mkdir(parents=True)
    asset.write_text(ASSET)
    done = corpus("new", "works--gauge", "--bundle", "works", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote tasks/works--gauge/task.toml" in done.stdout
    return tmp_path


def test_a_sound_corpus(place):
    done = corpus("lint", "tasks", "--no-run", cwd=place)
    assert done.returncode == 0, done.stdout
    assert done.stdout.strip().endswith("nothing run: 0 findings")
    assert corpus("sync", "tasks", "--check", cwd=place).returncode == 0
    done = corpus("register", "tasks", "--version", "1.0", cwd=place)
    assert done.stdout.startswith("akm-tasks-train@1.0: 1 tasks, sha256:")
    assert corpus("register", "tasks", "--check", cwd=place).returncode == 0


def test_findings_end_with_1(place):
    (place / "tasks/works--gauge/instruction.md").write_text("Use the gauge skill on /app.\n")
    done = corpus("lint", "tasks", "--no-run", cwd=place)
    assert done.returncode == 1
    assert "works--gauge/instruction.md: akm-hint: it says 'skill'" in done.stdout
    (place / "tasks/works--gauge/tests/akm_verify.py").write_text("old")
    done = corpus("sync", "tasks", "--check", cwd=place)
    assert (done.returncode, "stale tasks/works--gauge/tests/akm_verify.py" in done.stdout) == (1, True)


@pytest.mark.sandbox
def test_running_counts_near_misses(place):
    done = corpus("lint", "tasks/works--gauge", cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 near misses tried: 0 findings" in done.stdout


def test_rules_are_listed(place):
    done = corpus("lint", "--rules", cwd=place)
    assert done.returncode == 0
    assert "mutant-passes (run)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("lint", "nowhere", "--no-run"), 1, "no such folder"),
        (("lint", "tasks", "--rule", "nonsense"), 1, "no rule is called nonsense"),
        (("new", "Gauge"), 2, "not of the form"),
        (("new", "works--gauge"), 1, "exists already"),
        (("convert", "legacy-akm-bench", "tasks", "-o", "new"), 1, "no legacy corpus in it"),
    ],
)
def test_what_cannot_be_done_says_so(place, arguments, code, words):
    done = corpus(*arguments, cwd=place)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_conversion_with_problems_ends_with_1(place):
    task = place / "old/fixtures/corpus/tasks/works/bad/task.yaml"
    task.parent.mkdir(parents=True)
    task.write_text("id: [\n")
    (place / "old/fixtures/stashes").mkdir()
    done = corpus("convert", "legacy-akm-bench", "old", "-o", "new", cwd=place)
    assert done.returncode == 1
    assert "0 of 1 tasks converted" in done.stdout
    assert "task.yaml: not valid YAML" in done.stdout
