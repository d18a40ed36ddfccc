import json
import tomllib
from pathlib import Path

import pytest

from akm_harbor.agent.bundle import find_bundle
from akm_harbor.corpus import rig
from akm_harbor.corpus.harbor_contract import refusal, unknown_keys
from akm_harbor.corpus.memory_tasks import check_output, instruction, instruction_digest, write_manifest, write_tasks
from akm_harbor.corpus.memory_tasks_answers import collect_answers
from akm_harbor.corpus.memory_tasks_policy import write_policy
from akm_harbor.corpus.task import read_task, task_folders
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import sources
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.task_export import ExportSettings, export
from akm_harbor.sandbox.model.policy_file import load_policy
from akm_harbor.tables import Problems

BENCHMARKS = ("locomo", "longmemeval", "beam")
needs_rig = pytest.mark.skipif(rig.why_not() is not None, reason=f"{rig.why_not()}")


def histories_of(name, folder, limit=None):
    source = sources()[f"demo-{name}"]
    store = Store(convert(source.path, folder / f"data-{name}", source=source).path)
    return list(export(store, ExportSettings(limit=limit), Problems()))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("memory-tasks")
    found = {}
    for name in BENCHMARKS:
        listed = histories_of(name, root)
        found[name] = (write_tasks(name, listed, root / name, history="files"), listed)
    return found


def test_harbor_takes_every_task_and_knows_every_key(made):
    for done, _ in made.values():
        for task in done.tasks:
            assert refusal(task) is None
            assert unknown_keys(tomllib.loads((task / "task.toml").read_text())) == []


def test_one_task_a_question_and_one_bundle_a_history(made):
    assert {name: (len(done.tasks), done.bundles) for name, (done, _) in made.items()} == {
        "locomo": (22, 2), "longmemeval": (12, 12), "beam": (20, 2),
    }  # fmt: skip
    for done, _ in made.values():
        assert task_folders(done.output / "tasks") == sorted(done.tasks)


def test_the_arm_finds_its_bundle_beside_the_tasks(made):
    for done, listed in made.values():
        by_name = {history.name: history for history in listed}
        for task in done.tasks:
            bundle = find_bundle("task", task, None)
            assert {name for name, _ in bundle.files} == {f"memories/{d}.md" for d in by_name[bundle.name].documents}
            metadata = read_task(task).metadata
            refs = metadata.get("gold_refs") or [r for r in [metadata.get("gold_ref")] if r]
            assert {f"{ref}.md" for ref in refs} <= {name for name, _ in bundle.files}


def inside(task: Path) -> str:
    """Everything that the agent can see of a task: instruction and build context, names included."""
    files = [task / "instruction.md", *sorted(p for p in (task / "environment").rglob("*") if p.is_file())]
    return "\n".join(f"{file.relative_to(task)}\n{file.read_text()}" for file in files)


def test_gold_and_ids_stay_out_of_the_container(made):
    for name, (done, _) in made.items():
        for task in done.tasks:
            seen, metadata = inside(task), read_task(task).metadata
            question = json.loads((task / "tests/question.json").read_text())
            assert question["question_id"] == metadata["question_id"]
            for secret in ("answer_q", "filler_", "sharegpt", "has_answer", "gold_ref", metadata["bundle"]):
                assert secret not in seen
            if name == "longmemeval":
                assert f"{metadata['question_id']}_" not in seen
            assert not {p.name for p in (task / "environment").rglob("*")} & {"question.json", "solve.sh"}


def test_a_gold_that_the_history_does_not_hold_is_nowhere(made):
    """BEAM's ideal summaries and LongMemEval's explanations are worded by nobody in the history."""
    done, _ = made["beam"]
    golds = [
        (task, json.loads((task / "tests/question.json").read_text())["gold"])
        for task in done.tasks
        if read_task(task).metadata["qtype"] in ("summarization", "contradiction_resolution")
    ]
    assert len(golds) == 4
    assert not [task for task, gold in golds if gold in inside(task)]


def test_the_question_and_its_date_reach_the_agent_and_nothing_about_akm(made):
    done, listed = made["longmemeval"]
    asked = {q.name: q.question for history in listed for q in history.questions}
    for task in done.tasks:
        text = (task / "instruction.md").read_text()
        question = asked[task.name.partition("--")[2]]
        assert f"Question, asked on {question.date}: {question.text}\n" in text
        assert not {"akm", "memory", "skill"} & set(text.lower().split())


def test_one_instruction_for_all_questions_of_a_benchmark(made):
    for name, (done, listed) in made.items():
        digests = {
            instruction_digest(name, "files"): {
                (task / "instruction.md").read_text() for task in done.tasks
            }
        }  # fmt: skip
        questions = [q.question for history in listed for q in history.questions]
        expected = {instruction(name, q.text, q.date, "files") for q in questions}
        assert digests[done.instructions[name]] == expected


def test_history_none_leaves_the_working_folder_empty(tmp_path):
    listed = histories_of("longmemeval", tmp_path, limit=6)
    done = write_tasks("longmemeval", listed, tmp_path / "out", history="none")
    assert len(done.tasks) == 6
    for task in done.tasks:
        assert [p.name for p in (task / "environment").rglob("*")] == ["Dockerfile"]
        assert "COPY" not in (task / "environment/Dockerfile").read_text()
        assert "/app/history" not in (task / "instruction.md").read_text()
        assert read_task(task).metadata["history"] == "none"
        assert refusal(task) is None


@needs_rig
def test_solved_earns_1_untouched_0_and_a_half_right_answer_part(made):
    done, _ = made["locomo"]
    task = next(
        read_task(t) for t in done.tasks if "pottery teacher" in (t / "instruction.md").read_text()
    )  # fmt: skip
    with rig.bench(task) as bench:
        assert bench.judge().reward == 0
        bench.solve(task.path / "solution/solve.sh")
        assert bench.judge().reward == 1
        bench.reset({"answer.txt": b"Mrs Smith"})
        outcome = bench.judge()
        assert outcome.reports["reward.json"] == {"reward": 0.5}
        assert outcome.reports["score.json"]["answer"] == "Mrs Smith"


def test_an_output_that_is_taken_and_a_way_that_does_not_exist(tmp_path):
    (tmp_path / "out").mkdir()
    check_output(tmp_path / "out", "files")
    (tmp_path / "out/x").write_text("")
    with pytest.raises(AkmHarborError, match="not empty"):
        check_output(tmp_path / "out", "files")
    with pytest.raises(UsageError, match="no way"):
        check_output(tmp_path / "new", "both")


def test_the_manifest_says_what_was_done(made):
    done, _ = made["beam"]
    path = write_manifest(done, {"benchmark": "beam"}, [])
    value = json.loads(path.read_text())
    path.unlink()
    assert value["scorers"] == {"beam-offline/1 (poor)": 10, "beam-offline/1 (stand-in)": 10}
    assert sum(value["types"].values()) == value["tasks"] == 20


def test_the_policy_is_one_the_scripted_model_takes(made, tmp_path):
    for name, (_, listed) in made.items():
        path = tmp_path / f"{name}.yaml"
        count = write_policy(path, listed)
        policy = load_policy(path)
        assert len(policy.tasks) == count == len({q.question.text for h in listed for q in h.questions})


def trial(folder, score, arm=None):
    (folder / "verifier").mkdir(parents=True)
    (folder / "verifier/score.json").write_text(score if isinstance(score, str) else json.dumps(score))
    if arm:
        (folder / "agent/akm").mkdir(parents=True)
        (folder / "agent/akm/capture.json").write_text(json.dumps({"arm": arm}))


def test_answers_come_out_by_arm_and_what_is_broken_is_told(tmp_path):
    row = {"question_id": "q1", "answer": "blue", "scorer": "s/1", "score": 0.5}
    trial(tmp_path / "job/t1", row, arm="akm")
    trial(tmp_path / "job/t2", {**row, "question_id": "q2", "answer": "key sk-abcdefghijklmnop1234"}, arm="akm")
    trial(tmp_path / "job/t3", row, arm="../../evil")
    trial(tmp_path / "job/t4", "{", arm="akm")
    (tmp_path / "job/t5/verifier").mkdir(parents=True)
    (tmp_path / "job/t5/verifier/score.json").symlink_to(tmp_path / "job/t1/verifier/score.json")
    found = collect_answers(tmp_path / "job", tmp_path / "out")
    assert {path.name: n for path, n in found.files.items()} == {"answers-akm.jsonl": 2, "answers-_.._evil.jsonl": 1}
    assert len(found.skipped) == 2
    rows = [json.loads(line) for line in (tmp_path / "out/answers-akm.jsonl").read_text().splitlines()]
    assert [(r["question_id"], r["hypothesis"]) for r in rows] == [("q1", "blue"), ("q2", "key [REDACTED]")]


def test_a_folder_without_answers(tmp_path):
    with pytest.raises(AkmHarborError, match="holds no verifier"):
        collect_answers(tmp_path, tmp_path / "out")
