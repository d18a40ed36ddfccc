import os
import subprocess
import sys
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

from akm_harbor.tables import read_table
from akm_harbor.trials import collect, pool
from akm_harbor.trials.columns import ALL
from akm_harbor.trials.discover import TrialDir, discover
from akm_harbor.trials.worker import Request
from tests.trials.conftest import RECORDINGS, Jobs


def test_other_processes_give_what_this_one_gives(tmp_path: Path) -> None:
    inputs = [RECORDINGS / "harbor", RECORDINGS / "p0"]
    here = collect(inputs, tmp_path / "here", tasks=[RECORDINGS / "p0-tasks"], workers=1)
    there = collect(inputs, tmp_path / "there", tasks=[RECORDINGS / "p0-tasks"], workers=2)
    assert (here.statuses, here.problems) == (there.statuses, there.problems)
    for table in ALL:
        assert read_table(tmp_path / "here", table).equals(read_table(tmp_path / "there", table))


def test_small_amounts_are_read_here(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.trial()
    monkeypatch.setattr(pool, "_start", lambda: pytest.fail("a worker was started"))
    assert collect([jobs.root], tmp_path / "d").n_trials == 1


def test_a_trial_that_kills_its_reader_keeps_a_row(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        jobs.trial("one", f"t{i}__AAAAAA{i}")
    code = (
        "import os; from akm_harbor.trials import worker; read = worker.read_trial\n"
        "def deadly(trial, *rest):\n"
        "    if trial.name.startswith('t1'): os._exit(9)\n"
        "    return read(trial, *rest)\n"
        "worker.read_trial = deadly; worker.main()\n"
    )

    def start() -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    monkeypatch.setattr(pool, "_start", start)
    result = collect([jobs.root], tmp_path / "d", workers=2)
    assert result.statuses == {"scored": 2, "unreadable": 1}
    assert result.problems == {"reader-died": 1}


def test_a_script_without_a_main_guard_can_collect(jobs: Jobs, tmp_path: Path) -> None:
    jobs.trial()
    script = tmp_path / "script.py"
    script.write_text(
        "from akm_harbor.trials import collect\n"
        f"print(collect([{str(jobs.root)!r}], {str(tmp_path / 'd')!r}, workers=2).n_trials)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks the worker up in /proc")
def test_a_worker_ends_when_its_input_ends() -> None:
    worker = pool._start()
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.close()
    assert worker.wait(timeout=30) == 0
    worker.stdout.close()
    assert not Path(f"/proc/{worker.pid}/cmdline").exists()


@pytest.mark.skipif(os.name != "posix", reason="asks for process groups")
def test_a_ctrl_c_in_the_terminal_does_not_reach_a_worker() -> None:
    worker = pool._start()
    assert os.getpgid(worker.pid) == worker.pid != os.getpgrp()
    pool._stop(worker)
    assert worker.returncode == 0


def test_chunks_keep_order_and_bound_their_weight(jobs: Jobs) -> None:
    for i in range(5):
        trial = jobs.trial("one", f"t{i}__AAAAAA{i}")
        (trial / "agent").mkdir()
        with (trial / "agent" / "trajectory.json").open("wb") as handle:
            handle.truncate(10 * 1024 * 1024)
    trials = list(discover([jobs.root], time.time_ns()).jobs[0].trials)
    chunks = pool._chunks(trials)
    assert [t for chunk in chunks for t in chunk] == trials
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]
    assert len(pool._chunks(trials * 100)) >= 5 * 100 // 64


def requests(trials: list[TrialDir]) -> SimpleQueue[Request | None]:
    queue: SimpleQueue[Request | None] = SimpleQueue()
    for i, trial in enumerate(trials):
        queue.put(Request(i, [trial], "reward", 0))
    queue.put(None)
    return queue


def test_answers_come_in_the_order_of_the_requests(jobs: Jobs) -> None:
    for i in range(20):
        jobs.trial("one", f"t{i:02d}__AAAAAA{i % 10}")
    trials = list(discover([jobs.root], time.time_ns()).jobs[0].trials)
    names = [name for chunk in pool._Crew(requests(trials), 3).answers() for name in chunk.rows["trial_name"]]
    assert names == [t.name for t in trials]


def many(jobs: Jobs, n: int) -> list[TrialDir]:
    for i in range(n):
        jobs.trial("one", f"t{i:03d}__AAAA{i:03d}")
    return list(discover([jobs.root], time.time_ns()).jobs[0].trials)


def test_workers_begin_before_all_trials_are_given(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = many(jobs, 20)
    monkeypatch.setattr(pool, "_CHUNK", 8)
    with pool.Reader("reward", 0, workers=2) as reader:
        reader.give(trials[:9])
        assert reader._crew is not None
        done = reader._crew._done.get(timeout=60)
        assert isinstance(done, tuple)
        assert done[0].trials == trials[:8]
        reader._crew._done.put(done)
        reader.give(trials[9:])
        reader.give([])
        assert [name for chunk in reader.read() for name in chunk.rows["trial_name"]] == [t.name for t in trials]


def test_workers_wait_while_nobody_takes_what_they_read(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = many(jobs, 20)
    monkeypatch.setattr(pool, "_UNTAKEN_BYTES", 1)
    crew = pool._Crew(requests(trials), 2)
    time.sleep(1)
    assert crew._done.qsize() <= 2 * 2
    assert sum(chunk.n for chunk in crew.answers()) == 20


def test_a_reader_left_half_way_leaves_no_thread(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = many(jobs, 40)
    monkeypatch.setattr(pool, "_CHUNK", 1)
    with pool.Reader("reward", 0, workers=2) as reader:
        for trial in trials:
            reader.give([trial])
        crew = reader._crew
        assert crew is not None
        next(crew.answers())
    assert not any(thread.is_alive() for thread in crew._threads)


def test_deaths_among_many_trials_cost_only_the_deadly_ones(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = many(jobs, 12)
    code = (
        "import os; from akm_harbor.trials import worker; read = worker.read_trial\n"
        "deadly = lambda trial: trial.name[1:4] in ('002', '009')\n"
        "worker.read_trial = lambda trial, *rest: os._exit(9) if deadly(trial) else read(trial, *rest)\n"
        "worker.main()\n"
    )
    monkeypatch.setattr(
        pool, "_start", lambda: subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, cwd=Path.cwd())
    )
    monkeypatch.setattr(pool, "_CHUNK", 6)
    with pool.Reader("reward", 0, workers=2) as reader:
        reader.give(trials)
        chunks = list(reader.read())
    assert [name for chunk in chunks for name in chunk.rows["trial_name"]] == [t.name for t in trials]
    statuses = [status for chunk in chunks for status in chunk.rows["own_status"]]
    assert [i for i, status in enumerate(statuses) if status == "unreadable"] == [2, 9]


def test_what_goes_wrong_in_a_thread_is_raised(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> "subprocess.Popen[bytes]":
        raise OSError(11, "no more processes")

    trials = many(jobs, 3)
    monkeypatch.setattr(pool, "_start", start)
    with pool.Reader("reward", 0, workers=2) as reader:
        reader.give(trials)
        with pytest.raises(OSError, match="no more processes"):
            list(reader.read())
