"""What goes into an archive: the comparison's own rows, nothing secret, the same bytes each time."""

import json
import zipfile

import pyarrow.parquet as pq
import pytest

from akm_harbor.ab import archive
from akm_harbor.ab.archive_secrets import cleaner, leaks_in_table, leaks_in_text
from akm_harbor.ab.archive_verify import verify
from akm_harbor.ab.export import export
from akm_harbor.ab.run import report
from akm_harbor.errors import AkmHarborError, NotComparableError, UsageError
from akm_harbor.resources import resource
from akm_harbor.tables import PROBLEMS

from .support import dataset, matrix, trial

KEY = "sk-live-abcdefghijklmnop1234"


def member(path, name):
    with zipfile.ZipFile(path) as opened:
        return opened.read(name)


def table(path, name, tmp_path):
    file = tmp_path / f"{name}.parquet"
    file.write_bytes(member(path, f"dataset/{name}/part-0.parquet"))
    return pq.read_table(file)


def everything(path):
    with zipfile.ZipFile(path) as opened:
        return b"\n".join(opened.read(n) for n in opened.namelist())


@pytest.fixture
def sample():
    return resource("notebooks", "sample", "ab-jobs")


def test_the_archive_holds_the_report_that_the_jobs_give(sample, tmp_path):
    made = export([sample], "pre-opencode", "akm-opencode", tmp_path / "out.zip")
    report([sample], "pre-opencode", "akm-opencode", tmp_path / "report")
    archived, direct = (
        json.loads(member(made.archive, archive.VERDICT)),
        json.loads((tmp_path / "report/verdict.json").read_text()),
    )
    for document in (archived, direct):
        document.pop("manifest")
    assert archived == direct
    contents = json.loads(member(made.archive, archive.CONTENTS))
    assert contents["comparison"]["baseline"] == "pre-opencode"
    assert set(contents["members"]) == set(zipfile.ZipFile(made.archive).namelist()) - {archive.CONTENTS}
    found = verify(made.archive)
    assert (found.outcome, found.differences, found.notes) == ("agrees", (), ())
    assert found.n_attempts == 48
    assert found.n_numbers > 200


def test_same_rows_same_bytes(tmp_path, arms):
    data = dataset(tmp_path, [*matrix("control", arms[0]), *matrix("akm", arms[1])])
    one, two = (export([data], "control", "akm", tmp_path / f"{n}.zip") for n in "ab")
    assert one.archive.read_bytes() == two.archive.read_bytes()
    assert one.sha256 == two.sha256


def test_only_the_two_arms_are_published(tmp_path, arms):
    rows = [*matrix("control", arms[0]), *matrix("akm", arms[1]), *matrix("unfinished-idea", arms[1])]
    calls = [
        {"root": "jobs", "trial_path": f"{arm}/task-00__0000000", "trial_id": "t", "index": 0, "tool": f"tool-of-{arm}"}
        for arm in ("control", "akm", "unfinished-idea")
    ]
    tasks = [{"task_name": f"task-{n:02d}", "family": "f"} for n in range(40)]
    data = dataset(tmp_path, rows, tasks, tool_calls=calls)
    made = export([data], "control", "akm", tmp_path / "out.zip")
    assert set(table(made.archive, "trials", tmp_path)["arm"].to_pylist()) == {"control", "akm"}
    assert table(made.archive, "tool_calls", tmp_path)["tool"].to_pylist() == ["tool-of-control", "tool-of-akm"]
    assert len(table(made.archive, "tasks", tmp_path)) == 19
    assert b"unfinished-idea" not in everything(made.archive)
    manifest = json.loads(member(made.archive, archive.DATASET_MANIFEST))
    assert (manifest["trials"]["n"], manifest["trials_in_dataset"]) == (114, 171)
    assert verify(made.archive).outcome == "agrees"


def test_placebo_arms_that_the_report_shows_come_along(tmp_path, arms):
    rows = [*matrix("control", arms[0]), *matrix("akm", arms[1]), *matrix("empty-bundle", arms[0])]
    made = export([dataset(tmp_path, rows)], "control", "akm", tmp_path / "out.zip")
    assert [p.arm for p in made.result.placebos] == ["empty-bundle"]
    assert set(table(made.archive, "trials", tmp_path)["arm"].to_pylist()) == {"control", "akm", "empty-bundle"}
    assert verify(made.archive).outcome == "agrees"


def test_what_harbor_printed_for_several_arms_can_be_made_again(tmp_path, arms):
    def one_job(arm, rewards):
        return [
            {**row, "trial_path": f"job/{arm}-{row['trial_name']}", "exception_message": f"words of {arm}"}
            for row in matrix(arm, rewards)
        ]

    rows = [*one_job("control", arms[0]), *one_job("akm", arms[1]), *one_job("third", [[1.0]] * 19)]
    mean = (29 + 37 + 19) / (57 + 57 + 19)
    line = {"root": "jobs", "job_path": "job", "eval_key": "opencode-control__m__adhoc", "n_trials": 133, "mean": mean}
    calls = [{"root": "jobs", "trial_path": r["trial_path"], "trial_id": "t", "index": 0, "tool": "x"} for r in rows]
    data = dataset(tmp_path, rows, harbor_stats=[line], tool_calls=calls)
    made = export([data], "control", "akm", tmp_path / "out.zip")
    assert made.result.reconciled[0].agrees
    kept = table(made.archive, "trials", tmp_path).to_pylist()
    assert len(kept) == 133
    assert {r["exception_message"] for r in kept if r["arm"] == "third"} == {None}
    assert len(table(made.archive, "tool_calls", tmp_path)) == 114
    assert verify(made.archive).outcome == "agrees"


def test_problems_go_with_their_trials(tmp_path, arms):
    data = dataset(tmp_path, [*matrix("control", arms[0]), *matrix("akm", arms[1])])
    rows = [
        {"path": f"jobs/{p}", "kind": "invalid-json", "detail": "d", "action": "a"}
        for p in ("akm/task-00__0000000/agent/x.json", "akm/result.json", "other/task-00__0000000/x.json", "akm")
    ]
    pq.write_table(PROBLEMS.from_rows(rows), data / "problems" / "part-0.parquet")
    made = export([data], "control", "akm", tmp_path / "out.zip")
    kept = table(made.archive, "problems", tmp_path)["path"].to_pylist()
    assert kept == [r["path"] for r in rows if "other" not in r["path"]]


def test_secrets_and_places_are_taken_out(tmp_path, arms, monkeypatch):
    monkeypatch.setenv("STUDY_API_KEY", "no-known-shape-4711")
    root = "/home/jane/work/jobs"
    said = f"curl with {KEY} and no-known-shape-4711 from {root}/x and /home/jane/.config"
    rows = [*matrix("control", arms[0], root=root), *matrix("akm", arms[1], root=root)]
    rows.append(trial("akm", "task-00", 9, None, root=root, exception_message=said, task_path=f"{root}/tasks/t"))
    calls = [
        {
            "root": root,
            "trial_path": rows[0]["trial_path"],
            "trial_id": "t",
            "index": 0,
            "tool": "bash",
            "arguments_json": json.dumps({"command": said, "apiKey": "hidden-by-its-name"}),
            "akm_refs": [KEY, "skills/x"],
        }
    ]
    manifest = {"inputs": [{"root": root, "n_jobs": 2}], "note": KEY}
    made = export(
        [dataset(tmp_path, rows, manifest=manifest, tool_calls=calls)], "control", "akm", tmp_path / "out.zip"
    )
    text = everything(made.archive)
    for private in (KEY.encode(), b"no-known-shape-4711", b"jane", b"hidden-by-its-name"):
        assert private not in text
    for name in ("trials", "tool_calls"):  # compressed: look inside
        shown = str(table(made.archive, name, tmp_path).to_pylist())
        assert not any(private in shown for private in (KEY, "no-known-shape-4711", "jane", "hidden-by-its-name"))
    assert "[REDACTED]" in str(table(made.archive, "trials", tmp_path)["exception_message"].to_pylist())
    assert set(table(made.archive, "trials", tmp_path)["root"].to_pylist()) == {"jobs"}
    assert table(made.archive, "tool_calls", tmp_path)["akm_refs"].to_pylist() == [["[REDACTED]", "skills/x"]]
    assert made.n_redacted >= 3
    assert made.n_renamed >= 114
    assert verify(made.archive).outcome == "agrees"


def test_a_secret_in_a_name_stops_the_export(tmp_path, arms):
    data = dataset(tmp_path, [*matrix("control", arms[0]), *matrix(KEY, arms[1])])
    with pytest.raises(AkmHarborError, match="looks like a secret") as told:
        export([data], "control", KEY, tmp_path / "out.zip")
    assert "table trials, column arm (57 rows, the first is row 57)" in str(told.value)
    assert KEY not in str(told.value)
    assert not (tmp_path / "out.zip").exists()


def test_leaks_are_located_not_repeated(monkeypatch):
    monkeypatch.setenv("X_TOKEN", "value-of-a-secret-1")
    assert leaks_in_text("page", f"fine\nnot {KEY}\nnor value-of-a-secret-1") == ["page, line 2", "page, line 3"]
    rows = PROBLEMS.from_rows([{"path": "a"}, {"path": "b", "detail": KEY}])
    assert leaks_in_table("problems", rows) == ["table problems, column detail (1 row, the first is row 1)"]


def test_two_roots_of_one_name_stay_apart():
    clean = cleaner(["/a/jobs", "/b/jobs", "relative/jobs", "C:\\Users\\jane\\jobs"], ["/Users/jane/tasks/t1"])
    assert clean.text("/a/jobs/x /b/jobs/y relative/jobs /Users/jane/tasks") == "jobs/x jobs-2/y relative/jobs ~/tasks"
    assert "jane" not in clean.text("C:\\Users\\jane\\jobs\\t C:\\Users\\jane\\other")


def test_bad_requests(tmp_path, arms):
    data = dataset(tmp_path, [*matrix("control", arms[0]), *matrix("akm", arms[1])])
    with pytest.raises(UsageError, match=r"\.zip"):
        export([data], "control", "akm", tmp_path / "out.tar")
    with pytest.raises(UsageError, match="no arm 'akmm'"):
        export([data], "control", "akmm", tmp_path / "out.zip")
    other = dataset(tmp_path / "o", [*matrix("a", arms[0]), trial("b", "another", 0, 1.0)])
    with pytest.raises(NotComparableError):
        export([other], "a", "b", tmp_path / "out.zip")
    (tmp_path / "file").write_text("")
    with pytest.raises(AkmHarborError, match="cannot be written"):
        export([data], "control", "akm", tmp_path / "file" / "out.zip")
    assert not (tmp_path / "out.zip").exists()
