"""The command line and what it leaves behind; every bad input is one clear message and an exit code."""

import json
import subprocess
import sys

import pytest

from akm_harbor.ab.run import parse_options, read_task_names
from akm_harbor.cli import main
from akm_harbor.errors import UsageError

from .support import dataset, matrix, trial


@pytest.fixture
def call(monkeypatch, capsys):
    def run(*args):
        monkeypatch.setattr(sys, "argv", ["akm-harbor", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return ended.value.code or 0, told.out, told.err

    return run


@pytest.fixture
def data(tmp_path, arms):
    return dataset(tmp_path, [*matrix("control", arms[0]), *matrix("akm", arms[1])])


def test_report_ab(call, data, tmp_path):
    out = tmp_path / "new" / "out"
    code, told, _ = call("report", "ab", data, "--baseline", "control", "--treatment", "akm", "-o", out)
    assert code == 0
    assert "a difference of +14.0 points" in told
    assert sorted(p.name for p in out.iterdir()) == ["report.html", "verdict.json"]
    assert json.loads((out / "verdict.json").read_text())["outcome"] == "improvement"


@pytest.mark.parametrize(
    ("args", "code", "outcome"),
    [
        (["-b", "akm", "-t", "control"], 3, "regression"),
        (["-b", "akm", "-t", "control", "--margin", "0.3"], 0, "no-clear-difference"),
        (["-b", "control", "-t", "akm", "--rule", "non-inferior", "--margin", "0.1"], 0, "improvement"),
        (["-b", "control", "-t", "akm", "--policy", "fail", "--level", "0.995"], 0, "no-clear-difference"),
    ],
)
def test_exit_codes(  # noqa: PLR0917
    call, data, tmp_path, args, code, outcome
):
    assert call("report", "ab", data, "-o", tmp_path / "out", *args)[0] == code
    assert json.loads((tmp_path / "out/verdict.json").read_text())["outcome"] == outcome


def test_not_comparable_still_leaves_the_report(call, tmp_path, arms):
    path = dataset(tmp_path, [*matrix("a", arms[0]), *matrix("b", arms[1], model_name="other/model")])
    code, told, _ = call("report", "ab", path, "-b", "a", "-t", "b", "-o", tmp_path / "out")
    assert code == 4
    assert "Model: scripted/demo against other/model" in told
    assert "cannot be compared" in (tmp_path / "out/report.html").read_text()


BAD = [
    (["-b", "contrl", "-t", "akm"], 2, ["no arm 'contrl'", "Did you mean 'control'"]),
    (["-b", "control", "-t", "control"], 2, ["both 'control'"]),
    (["-b", "control", "-t", "empty"], 4, ["arm 'empty' has no attempt", "1 install_only"]),
    (["-b", "control", "-t", "far"], 4, ["share no task", "--task-names"]),
    (["-b", "control", "-t", "akm", "--policy", "zero"], 2, ["no error policy 'zero'", "keep-reward"]),
    (["-b", "control", "-t", "akm", "--rule", "vibes"], 2, ["no rule 'vibes'"]),
    (["-b", "control", "-t", "akm", "--level", "95"], 2, ["level must lie between 0 and 1"]),
    (["-b", "control", "-t", "akm", "--accept", "modle"], 2, ["no comparability check 'modle'"]),
    (["-b", "control", "-t", "akm", "--by", "trial"], 2, ["cannot be told apart by 'trial'"]),
    (["-b", "control", "-t", "akm", "--task-names", "nowhere.json"], 2, ["nowhere.json", "cannot be read as JSON"]),
]


@pytest.mark.parametrize(("args", "code", "parts"), BAD, ids=[" ".join(a) for a, *_ in BAD])
def test_bad_input(  # noqa: PLR0917
    call, tmp_path, arms, args, code, parts
):
    rows = [*matrix("control", arms[0]), *matrix("akm", arms[1])]
    rows += [trial("empty", "t", 0, None, status="install_only"), trial("far", "elsewhere", 0, 1.0)]
    found, _, told = call("report", "ab", dataset(tmp_path, rows), "-o", tmp_path / "out", *args)
    assert found == code
    assert told.startswith("akm-harbor: ")
    assert told.count("\n") <= 2
    for part in parts:
        assert part in told
    assert not (tmp_path / "out").exists()


def test_bad_places(call, data, tmp_path):
    (tmp_path / "file").write_text("in the way")
    arms = ["-b", "control", "-t", "akm"]
    code, _, told = call("report", "ab", data, *arms, "-o", tmp_path / "file" / "out")
    assert (code, "cannot be written" in told) == (1, True)
    code, _, told = call("report", "ab", tmp_path / "nowhere", *arms, "-o", tmp_path / "out")
    assert (code, "nowhere: no such" in told) == (1, True)
    (data / "trials" / "part-0.parquet").write_text("not parquet")
    code, _, told = call("report", "ab", data, *arms, "-o", tmp_path / "out")
    assert (code, "cannot be read" in told) == (1, True)


def test_options_arrive_as_text_or_numbers():
    assert parse_options({"level": "0.9", "strict": "true", "accept": "model, harbor"}) == parse_options(
        {"level": 0.9, "strict": True, "accept": ["model", "harbor"]}
    )
    with pytest.raises(UsageError, match="no option 'lvl'"):
        parse_options({"lvl": 1})
    with pytest.raises(UsageError, match="must be a number, not 'high'"):
        parse_options({"level": "high"})


def test_task_names_file(tmp_path):
    file = tmp_path / "names.json"
    file.write_text('{"bench/one": "one"}')
    assert read_task_names(file) == {"bench/one": "one"}
    assert read_task_names(None) == {}
    file.write_text('["one"]')
    with pytest.raises(UsageError, match="must be a JSON object"):
        read_task_names(file)


def test_analysis_never_imports_harbor(data, tmp_path):
    code = (
        "import sys; from pathlib import Path; from akm_harbor.ab.run import report; "
        f"report([Path({str(data)!r})], 'control', 'akm', Path({str(tmp_path / 'o')!r})); "
        "assert not any(m == 'harbor' or m.startswith('harbor.') for m in sys.modules); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_dataset_that_knows_nothing_but_who_did_what(call, tmp_path, arms):
    rows = [*matrix("control", arms[0]), *matrix("akm", arms[1])]
    kept = ("arm", "status", "reward", "trial_path", "task_name")
    path = dataset(tmp_path, [{name: row[name] for name in kept} for row in rows])
    code, told, _ = call("report", "ab", path, "-b", "control", "-t", "akm", "-o", tmp_path / "out")
    assert code == 0
    assert "a difference of +14.0 points" in told
    assert "NaN" not in (tmp_path / "out/report.html").read_text()
