"""`akm-harbor corpus convert locomo|longmemeval|beam` and `corpus answers`."""

import json

import pytest
from typer.testing import CliRunner

from akm_harbor.cli.corpus import app
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import sources


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "cache"))
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(a) for a in arguments])


@pytest.mark.parametrize("name", ["locomo", "longmemeval", "beam"])
def test_convert(run, tmp_path, name):
    data = sources()[f"demo-{name}"].path
    done = run("convert", name, "--data", data, "-o", tmp_path / "out", "--limit", 10, "--policy", tmp_path / "p.yaml")
    assert done.exit_code == 0, done.output
    assert f"{tmp_path / 'out'}: 10 tasks" in done.output.replace("\n", "")
    manifest = json.loads((tmp_path / "out/conversion.json").read_text())
    assert manifest["settings"] == {
        "limit": 10, "seed": 0, "history": "files", "granularity": "session", "synthesis": "lead",
    }  # fmt: skip
    assert manifest["tasks"] == 10
    assert (tmp_path / "p.yaml").is_file()


def test_another_benchmark_s_file_an_output_that_is_taken_and_no_data(run, tmp_path):
    wrong = run("convert", "beam", "--data", sources()["demo-locomo"].path, "-o", tmp_path / "out")
    assert wrong.exit_code != 0
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("")
    taken = run("convert", "locomo", "--data", sources()["demo-locomo"].path, "-o", tmp_path / "full")
    assert taken.exit_code != 0
    assert "not empty" in str(taken.exception)
    missing = run("convert", "locomo", "--data", tmp_path / "none.json", "-o", tmp_path / "new")
    assert missing.exit_code != 0
    assert "no such file" in str(missing.exception)
    assert not (tmp_path / "new").exists()


def test_a_converted_dataset_and_one_of_another_benchmark(run, tmp_path):
    source = sources()["demo-locomo"]
    data = convert(source.path, tmp_path / "data", source=source).path
    assert run("convert", "locomo", "--data", data, "-o", tmp_path / "out").exit_code == 0
    wrong = run("convert", "beam", "--data", data, "-o", tmp_path / "new")
    assert wrong.exit_code != 0
    assert "is locomo" in str(wrong.exception)
    assert not (tmp_path / "new").exists()


def test_what_the_data_lack_is_told(run, tmp_path):
    samples = json.loads(sources()["demo-locomo"].path.read_text())
    samples[0]["conversation"]["session_1"] = []
    (tmp_path / "locomo.json").write_text(json.dumps(samples))
    for output in ("first", "again"):
        done = run("convert", "locomo", "--data", tmp_path / "locomo.json", "-o", tmp_path / output)
        assert done.exit_code == 0, done.output
        assert "empty-session: " in done.stderr
        assert "(kept without turns)" in done.stderr


def test_answers(run, tmp_path):
    trial = tmp_path / "job/t1/verifier"
    trial.mkdir(parents=True)
    score = {"question_id": "q1", "answer": "blue", "scorer": "s/1", "score": 0.5}
    (trial / "score.json").write_text(json.dumps(score))
    done = run("answers", tmp_path / "job", "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert "answers-unknown.jsonl: 1 answers" in done.output.replace("\n", "")
