"""`ab run`: what is refused before anything starts; a killed study goes on to the table of an undisturbed one."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.report.verdict import write_json
from akm_harbor.sandbox.harbor import plain_line, run_harbor
from akm_harbor.study.cost import Usage, predict
from akm_harbor.study.declaration import find_study
from akm_harbor.study.folder import StudyFolder
from akm_harbor.study.mend import Keeper, complete, finished, interrupted, mend
from akm_harbor.study.run import Plan, Watch, dry_run, run_study
from akm_harbor.study.scripted import _played, point_at
from akm_harbor.tables import read_frame

STUDIES = """
[defaults]
model = "scripted/demo"
attempts = 2
concurrent = 2
environment = "sandbox"
policy = "demo-policy.yaml"
price = { input = 1.0, cache = 0.1, output = 4.0 }
[arms.control]
agent = "ControlOpenCode"
[arms.oracle-context]
agent = "ControlOpenCode"
kwargs = { context = "bundle" }
[studies.small]
dataset = "akm-tasks"
arms = ["control", "oracle-context"]
tasks = ["drillbit--widen-pool"]
"""


def _trial(job: Path, name: str, result: dict[str, object] | None, session: str = "") -> Path:
    trial = job / name
    (trial / "agent").mkdir(parents=True)
    (trial / "config.json").write_text("{}")
    if result is not None:
        (trial / "result.json").write_text(json.dumps(result))
    if session:
        (trial / "agent" / "opencode.txt").write_text("noise\n" + json.dumps({"sessionID": session}) + "\n")
    return trial


def test_half_written_job_files_are_put_back(tmp_path: Path) -> None:
    job, kept = tmp_path / "job", tmp_path / "kept"
    _trial(job, "one__abc", {"id": "1"})
    for name in ("config.json", "lock.json", "result.json"):
        write_json(job / name, {"n": 1})
    keeper = Keeper(job, kept)
    keeper.keep()
    (job / "result.json").write_text("")
    (job / "lock.json").write_text('{"n": ')
    keeper.keep()  # must not keep what is half-written
    assert len(mend(job, kept)) == 2
    assert {json.loads((job / name).read_text())["n"] for name in ("config.json", "lock.json", "result.json")} == {1}
    assert mend(job, kept) == []


def test_a_job_that_never_began_is_begun_anew(tmp_path: Path) -> None:
    job = tmp_path / "job"
    _trial(job, "one__abc", None)
    (job / "config.json").write_text("")
    assert mend(job, tmp_path / "kept") == ["config.json was half-written, and no trial had ended: taken away"]
    assert not (job / "config.json").exists()


def test_trials_are_told_apart(tmp_path: Path) -> None:
    _trial(tmp_path, "done__a", {"id": "1"})
    _trial(tmp_path, "begun__b", None)
    _trial(tmp_path, "torn__c", None)
    (tmp_path / "torn__c" / "result.json").write_text("")
    assert [path.name for path in finished(tmp_path)] == ["done__a"]
    assert interrupted(tmp_path) == ["begun__b", "torn__c"]
    assert interrupted(tmp_path / "nothing") == []


@pytest.mark.parametrize(
    ("result", "done"),
    [
        ({"n_total_trials": 1, "finished_at": "2026-01-01T00:00:00", "stats": {}}, True),
        ({"n_total_trials": 2, "finished_at": "2026-01-01T00:00:00", "stats": {}}, False),
        ({"n_total_trials": 1, "finished_at": None, "stats": {}}, False),
        ({"n_total_trials": 1, "finished_at": "2026-01-01T00:00:00", "stats": {"n_cancelled_trials": 1}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_complete_job_is_told_from_a_part_of_one(
    tmp_path: Path, result: dict[str, object] | None, done: bool
) -> None:
    _trial(tmp_path, "done__a", {"id": "1"})
    if result is not None:
        (tmp_path / "result.json").write_text(json.dumps(result))
    assert complete(tmp_path) is done


def test_a_resumed_model_leaves_out_the_attempts_of_trials_that_stay(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path, "job")
    _trial(folder.job, "done__a", {"id": "1"}, "ses_1")
    _trial(folder.job, "cancelled__b", {"exception_info": {"exception_type": "CancelledError"}}, "ses_2")
    _trial(folder.job, "begun__c", None, "ses_3")
    lines = [{"kind": "main", "session": f"ses_{n}", "task": "pool", "arm": "control", "attempt": n} for n in (1, 2, 3)]
    folder.requests.write_text("\n".join(map(json.dumps, lines)) + '\n{"kind": "ma')
    assert list(_played(folder)) == [("pool", "control", 1)]


def test_one_run_at_a_time(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study", "job")
    with folder.held(), pytest.raises(AkmHarborError, match="another run is working here"), folder.held(patience=0.1):
        pass
    with folder.held():
        pass


def test_a_child_holds_the_folder_after_its_parent(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study", "job")
    with folder.held() as lock:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], pass_fds=(lock,))
    try:
        with pytest.raises(AkmHarborError, match="another run"), folder.held(patience=0.1):
            pass
    finally:
        child.kill()
        child.wait()
    with folder.held(patience=5):
        pass


def test_harbors_last_words_are_told(tmp_path: Path) -> None:
    log = tmp_path / "harbor.log"
    log.write_text("old words\n")
    with (tmp_path / "lock").open("w") as lock, pytest.raises(AkmHarborError) as error:
        run_harbor(["run", "-c", str(tmp_path / "none.yaml")], log, lock=lock.fileno(), tick=lambda: None)
    assert "none.yaml" in str(error.value).replace("\n", "")
    assert "old words" not in str(error.value)
    assert plain_line(["run", "-c", "a b.yaml"]) == "harbor run -c 'a b.yaml'"


@pytest.mark.parametrize("ctrl_c", [signal.SIG_DFL, signal.SIG_IGN], ids=["in front", "in the background"])
def test_harbor_is_interrupted_when_its_parent_is_gone(tmp_path: Path, ctrl_c: signal.Handlers) -> None:
    """Once: on a second interrupt Harbor drops its trials half-way. A stand-in for Harbor counts."""
    (tmp_path / "harbor" / "cli").mkdir(parents=True)
    (tmp_path / "harbor" / "__init__.py").write_text("")
    (tmp_path / "harbor" / "cli" / "__init__.py").write_text("")
    (tmp_path / "harbor" / "cli" / "main.py").write_text(
        "import signal, time\n"
        "from pathlib import Path\n"
        "def app():\n"
        "    times = []\n"
        "    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN: return\n"
        "    signal.signal(signal.SIGINT, lambda *_: times.append(1))\n"
        f"    Path({str(tmp_path / 'up')!r}).touch()\n"
        "    while not times: time.sleep(0.05)\n"
        "    time.sleep(1)\n"
        f"    Path({str(tmp_path / 'down')!r}).write_text(str(len(times)))\n"
    )
    code = (
        "import os, signal, subprocess, sys, time\n"
        "import threading\n"
        f"signal.signal(signal.SIGINT, {ctrl_c:d})\n"
        "for _ in range(20): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "subprocess.Popen([sys.executable, '-m', 'akm_harbor.sandbox.launch', str(os.getpid()), 'run'])\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path)})
    _until((tmp_path / "up").exists)
    parent.kill()
    parent.wait()
    _until(lambda: (tmp_path / "down").is_file() and (tmp_path / "down").read_text() != "")
    assert (tmp_path / "down").read_text() == "1"


def _children(pid: int) -> list[int]:
    """Direct children of a process, from /proc."""
    stats = [entry / "stat" for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    found = []
    for path in stats:
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def _until(true: object, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    path = tmp_path / "studies.toml"
    path.write_text(STUDIES)
    return path


def test_two_studies_do_not_share_a_folder(tmp_path: Path, studies: Path) -> None:
    study = find_study("small", studies)
    folder = StudyFolder(tmp_path / "out", "small")
    folder.root.mkdir()
    folder.write({"job_sha256": "0" * 64, "port": 1})
    folder.job_file.write_text(yaml.safe_dump({"job_name": "small", "n_attempts": 9}))
    with pytest.raises(UsageError, match=r"holds another study: it differs in .*n_attempts"):
        run_study(study, folder.root, Plan(), Watch(print))
    (tmp_path / "other" / "jobs" / "small").mkdir(parents=True)
    with pytest.raises(UsageError, match="did not begin"):
        run_study(study, tmp_path / "other", Plan(), Watch(print))


def test_the_port_is_part_of_the_job(tmp_path: Path, studies: Path) -> None:
    from akm_harbor.study.render import job_of

    job = point_at(job_of(find_study("small", studies)), 4711, tmp_path)
    urls = {agent["kwargs"]["opencode_config"]["provider"]["scripted"]["options"]["baseURL"] for agent in job["agents"]}
    assert urls == {f"http://127.0.0.1:4711/arm/{arm}/v1" for arm in ("control", "oracle-context")}


@pytest.mark.sandbox
@pytest.mark.opencode
def test_a_cap_stops_before_the_first_trial(tmp_path: Path, studies: Path) -> None:
    study = find_study("small", studies)
    usage = dict.fromkeys(("control", "oracle-context"), Usage(1e6, 0, 0))
    plan = Plan(predict(study, usage, "by hand"), cap=1.0)
    with pytest.raises(AkmHarborError, match="nothing was run"):
        run_study(study, tmp_path / "out", plan, Watch(print))
    with pytest.raises(UsageError, match="needs the tokens of a trial"):
        run_study(study, tmp_path / "out", Plan(cap=1.0), Watch(print))
    assert not (tmp_path / "out" / "jobs").exists()
    said: list[str] = []
    dry_run(study, tmp_path / "dry", Plan(), Watch(said.append))
    assert not (tmp_path / "dry").exists()
    assert said[-1] == "dry run: nothing was started"
    assert any(line.startswith("by hand: harbor run -c ") for line in said)


@pytest.mark.sandbox
@pytest.mark.opencode
def test_a_killed_study_goes_on_to_the_same_table(tmp_path: Path, studies: Path) -> None:
    def start(out: Path) -> subprocess.Popen[bytes]:
        code = "from akm_harbor.cli import main; main()"
        arguments = ["ab", "run", "small", "--declarations", str(studies), "-o", str(out)]
        with (tmp_path / "said").open("ab") as said:
            command = [sys.executable, "-c", code, *arguments]
            return subprocess.Popen(command, start_new_session=True, stdout=said, stderr=said)

    def table(out: Path) -> list[tuple[object, ...]]:
        names = ["arm", "task_name", "status", "reward", "n_tool_calls", "n_input_tokens", "n_output_tokens"]
        frame = read_frame(out / "dataset", "trials", names)
        return sorted(frame[frame["status"] != "superseded"].itertuples(index=False, name=None), key=str)

    undisturbed = start(tmp_path / "a")
    assert undisturbed.wait(300) in {0, 3, 4}, (tmp_path / "said").read_text()
    killed = start(tmp_path / "b")
    folder = StudyFolder(tmp_path / "b", "small")
    _until(lambda: any(finished(folder.job)), 240)
    harbor = _children(killed.pid)
    for pid in (killed.pid, *harbor):
        os.kill(pid, signal.SIGKILL)
    killed.wait()
    before = len(list(finished(folder.job)))
    assert before < 4
    assert start(tmp_path / "b").wait(300) in {0, 3, 4}, (tmp_path / "said").read_text()
    assert table(tmp_path / "b") == table(tmp_path / "a")
    assert len(table(tmp_path / "b")) == 4
    runs = folder.read()["runs"]
    assert [run["ended"] for run in runs] == [None, "done"]
    assert runs[1]["done_before"] == before
    assert runs[1]["command"].startswith("harbor job resume -p ")
    assert folder.read()["actual"]["recorded"] is True
    assert start(tmp_path / "b").wait(300) in {0, 3, 4}
    assert (tmp_path / "said").read_text().count("all 4 trials are done: nothing to run") == 1
    assert len(folder.read()["runs"]) == 2
    place = folder.root / "control-vs-oracle-context"
    assert {path.name for path in place.iterdir()} >= {"report.html", "verdict.json", "junit.xml", "summary.md"}
