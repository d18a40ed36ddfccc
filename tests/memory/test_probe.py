"""Whole probes over the shipped datasets: tables, manifest, resuming, parallel and on Dask."""

import errno
import os
import signal
import threading
import time

import pytest

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory import checkpoint as checkpoint_module
from akm_harbor.memory import probe as probe_module
from akm_harbor.memory import schedule
from akm_harbor.memory.backends.registry import parse_arm
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import find_source
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.probe import Settings, probe
from akm_harbor.memory.unit import run_unit
from akm_harbor.tables import read_frame, read_manifest

CLOCK = ["ingest_ms", "search_ms", "started_at", "run_id"]
DEMOS = ("locomo", "longmemeval", "beam", "convomem")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    return {name: Store(convert(find_source(f"demo-{name}").path, root / name).path) for name in DEMOS}


def settings(*arms, **changes):
    return Settings(tuple(map(parse_arm, arms or ("bm25",))), **changes)


def table(path, name="memory_trials"):
    frame = read_frame(path, name)
    return frame.drop(columns=[c for c in CLOCK if c in frame])


@pytest.mark.parametrize("name", DEMOS)
def test_every_benchmark_goes_through_every_plain_arm(stores, tmp_path, name):
    report = probe(
        stores[name],
        settings("none", "full", "oracle", "bm25", "bow", "grep", granularities=("turn", "session")),
        tmp_path / "out",
    )
    asked = stores[name].manifest["questions"]
    assert report.questions == asked * 12
    assert report.failed == 0
    trials = read_frame(tmp_path / "out", "memory_trials")
    scored = trials[trials["gold_status"] == "ok"]
    means = scored.groupby("arm")["recall_frac"].mean()
    assert means["oracle"] > 0.99
    assert means["none"] == 0
    assert means["none"] < means["bm25"] <= means["oracle"]
    assert scored[scored["arm"] == "full"]["evidence_in_ctx"].dropna().eq(1).all()
    ranking = trials[~trials["arm"].isin(["full"])]
    assert len(read_frame(tmp_path / "out", "memory_retrieval")) == len(ranking) * 5


def test_the_manifest_says_what_was_measured(stores, tmp_path):
    probe(stores["locomo"], settings("bm25", "oracle", topk=3, seed=4), tmp_path / "out")
    manifest = read_manifest(tmp_path / "out")
    assert manifest["kind"] == "memory-probe"
    assert manifest["dataset"]["sha256"] == stores["locomo"].manifest["sha256"]
    assert set(manifest["arms"]) == {"bm25", "oracle"}
    assert manifest["arms"]["bm25"]["settings"]["k1"] == 1.5
    assert manifest["settings"]["seed"] == 4
    assert manifest["protocols"]["session"]["topk"] == 3
    assert manifest["statuses"] == {"ok": 44}
    rows = read_frame(tmp_path / "out", "memory_trials")
    assert set(rows["protocol_id"]) == {manifest["protocols"]["session"]["id"]}
    assert set(rows["run_id"]) == {manifest["run_id"]}


def test_k_that_reaches_every_document_warns(stores, tmp_path):
    report = probe(stores["locomo"], settings(topk=5), tmp_path / "out")  # three sessions a history
    (problem,) = [p for p in report.problems if p.kind == "k-not-below-corpus"]
    assert problem.detail.startswith("22 questions an arm")
    assert read_frame(tmp_path / "out", "memory_trials")["k_ge_corpus"].all()
    report = probe(stores["locomo"], settings(topk=2), tmp_path / "out")
    assert not [p for p in report.problems if p.kind == "k-not-below-corpus"]


def test_a_sample_is_drawn_by_its_seed_and_named(stores, tmp_path):
    drawn = []
    for seed in (1, 1, 2):
        probe(stores["locomo"], settings(sample=7, seed=seed), tmp_path / "out")
        drawn.append(tuple(table(tmp_path / "out")["question_id"]))
    assert len(drawn[0]) == 7
    assert drawn[0] == drawn[1] != drawn[2]
    assert read_manifest(tmp_path / "out")["protocols"]["session"]["sample"] == "7 of 22, seed 2"
    probe(stores["locomo"], settings(instances=1), tmp_path / "out")
    assert len(table(tmp_path / "out")) == 12


def test_repeats_have_other_names_and_the_same_scores(stores, tmp_path):
    probe(stores["longmemeval"], settings("bm25", "grep", repeats=3, granularities=("turn",)), tmp_path / "out")
    rows = table(tmp_path / "out")
    assert set(rows["seed"]) == {0, 1, 2}
    assert (rows.groupby(["arm", "question_id"])["recall_frac"].nunique(dropna=False) == 1).all()


def test_both_longmemeval_denominators_come_from_the_user_corpus(stores, tmp_path):
    probe(stores["longmemeval"], settings(corpus="user"), tmp_path / "out")
    rows = table(tmp_path / "out")
    answerable = rows[~rows["is_abstention"]]
    assert len(answerable) == 10
    assert (answerable["gold_status"] == "ok").sum() == 8  # two are said by the assistant alone
    with pytest.raises(UsageError, match="no user"):
        probe(stores["locomo"], settings(corpus="user"), tmp_path / "out")


def test_processes_give_the_same_table_as_one(stores, tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        probe(
            stores["convomem"], settings("bm25", "grep", granularities=("turn", "session"), jobs=jobs), tmp_path / name
        )
    for name in ("memory_trials", "memory_retrieval"):
        assert table(tmp_path / "one", name).equals(table(tmp_path / "two", name))


def test_a_stopped_probe_goes_on_where_it_was(stores, tmp_path, monkeypatch):
    done = []

    def stop_after_seven(unit):
        if len(done) == 7:
            raise KeyboardInterrupt
        done.append(unit.key())
        return run_unit(unit)

    monkeypatch.setattr(schedule, "run_unit", stop_after_seven)
    with pytest.raises(KeyboardInterrupt):
        probe(stores["longmemeval"], settings("bm25"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    again = []
    monkeypatch.setattr(schedule, "run_unit", lambda unit: again.append(unit.key()) or run_unit(unit))
    report = probe(stores["longmemeval"], settings("bm25"), tmp_path / "out")
    assert report.resumed == 7
    assert len(again) == 5
    assert not set(again) & set(done)
    assert not (tmp_path / ".out.parts").exists()
    monkeypatch.undo()
    probe(stores["longmemeval"], settings("bm25"), tmp_path / "fresh")
    assert table(tmp_path / "out").equals(table(tmp_path / "fresh"))


def test_a_full_disk_keeps_what_was_finished_and_the_old_result(stores, tmp_path, monkeypatch):
    probe(stores["longmemeval"], settings("bow"), tmp_path / "out")
    before = table(tmp_path / "out")
    real, saved = checkpoint_module.write_file, []

    def fill_up(path, data):
        if len(saved) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        saved.append(path)
        real(path, data)

    monkeypatch.setattr(checkpoint_module, "write_file", fill_up)
    with pytest.raises(AkmHarborError, match="No space left on device"):
        probe(stores["longmemeval"], settings("bm25"), tmp_path / "out")
    monkeypatch.undo()
    assert table(tmp_path / "out").equals(before)
    assert probe(stores["longmemeval"], settings("bm25"), tmp_path / "out").resumed == 4


def test_an_arm_that_cannot_work_stops_the_probe_at_once(stores, tmp_path):
    with pytest.raises(AkmHarborError, match="no such program"):
        probe(stores["locomo"], settings("bm25", f"akm:path={tmp_path / 'none'}"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topk": 0}, "topk must be at least 1"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"ks": (0, 5)}, "cut-offs must be positive"),
        ({"ks": ()}, "cut-offs must be positive"),
        ({"sample": 0}, "at least one question"),
        ({"budget": 0}, "budget must be positive"),
        ({"granularities": ("page",)}, "no granularity"),
        ({"scheduler": "local:none"}, "no number of local workers"),
    ],
)
def test_what_cannot_be_meant_is_refused(stores, tmp_path, changes, said):
    with pytest.raises(UsageError, match=said):
        probe(stores["locomo"], settings(**changes), tmp_path / "out")
    with pytest.raises(UsageError, match="no backend"):
        Settings(())
    with pytest.raises(UsageError, match="named twice"):
        settings("bm25", "bm25")


@pytest.fixture(scope="module")
def cluster():
    """Two Dask worker processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as made:
        yield made


def test_a_dask_cluster_gives_the_same_table(stores, tmp_path, cluster):
    probe(stores["convomem"], settings("bm25", "grep"), tmp_path / "one")
    probe(stores["convomem"], settings("bm25", "grep", scheduler=cluster.scheduler_address), tmp_path / "two")
    assert table(tmp_path / "one").equals(table(tmp_path / "two"))


def test_a_worker_killed_midway_loses_nothing(stores, tmp_path, cluster):
    first = threading.Event()
    pids = [worker.process.pid for worker in cluster.workers.values() if worker.process]
    assert len(pids) == 2

    def kill():
        first.wait(60)
        os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    work = {"granularities": ("turn", "session"), "repeats": 2}
    report = probe(
        stores["longmemeval"],
        settings("grep", "bm25", scheduler=cluster.scheduler_address, **work),
        tmp_path / "two",
        lambda *_: first.set(),
    )
    killer.join()
    assert report.failed == 0
    probe(stores["longmemeval"], settings("grep", "bm25", **work), tmp_path / "one")
    assert table(tmp_path / "one").equals(table(tmp_path / "two"))


def test_no_scheduler_is_a_clear_error(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "_CONNECT_S", 1)
    with pytest.raises(AkmHarborError, match="no Dask scheduler answers"):
        probe(stores["locomo"], settings(scheduler="tcp://127.0.0.1:1"), tmp_path / "out")


def kill_once(unit):
    """Runs in a worker process: the first to come kills its process."""
    marker = os.environ["KILL_ONCE"]
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return run_unit(unit)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def test_a_dead_worker_process_costs_only_its_time(stores, tmp_path, monkeypatch):
    monkeypatch.setenv("KILL_ONCE", str(tmp_path / "killed"))
    monkeypatch.setattr(schedule, "run_unit", kill_once)
    probe(stores["convomem"], settings("bm25", jobs=2), tmp_path / "two")
    assert (tmp_path / "killed").exists()
    monkeypatch.undo()
    probe(stores["convomem"], settings("bm25"), tmp_path / "one")
    assert table(tmp_path / "one").equals(table(tmp_path / "two"))


def test_progress_counts_to_the_end(stores, tmp_path):
    seen = []
    probe(stores["locomo"], settings("bm25", "none"), tmp_path / "out", lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)
    assert probe_module.KIND == "memory-probe"
