"""`akm-harbor canary` from the command line, on recorded stores."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from akm_harbor.cli.app import app
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.tables.dataset import read_manifest
from tests.canary.support import digests, execute, unpack


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "akm"
    unpack("collapse/index.db", folder / "index.db")
    unpack("collapse/state.db", folder / "state.db")
    return folder


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["canary", *map(str, arguments)])


def test_history_to_a_dataset(store: Path, tmp_path: Path) -> None:
    before = digests(store)
    result = _run("history", store / "state.db", "-o", tmp_path / "dataset")
    assert result.exit_code == 0, result.output
    assert "12 canary_cycles, 40 canary_queries, 480 canary_ranks" in result.output
    assert read_manifest(tmp_path / "dataset")["cycles"] == 12
    assert digests(store) == before


def test_mint_snapshot_show_refresh(store: Path) -> None:
    before = digests(store)
    minted = _run("mint", store, "--count", 10, "--k", 5)
    assert minted.exit_code == 0, minted.output
    assert "10 canaries" in minted.output
    first = _run("snapshot", store)
    assert "new cycle" in first.output
    assert "10 of 10 canaries found" in first.output
    assert "already measured" in _run("snapshot", store).output
    shown = _run("show", store.with_name("akm.canary"), "--json")
    listed = json.loads(shown.output)
    assert listed[0]["status"] == "unknown"
    assert len(listed[0]["canaries"]) == 10
    assert "10 canaries" in _run("refresh", store, "--count", 10).output
    assert digests(store) == before
    again = _run("mint", store)
    assert isinstance(again.exception, AkmHarborError)
    assert again.exception.exit_code == 1


def test_check_gates_a_run(store: Path, tmp_path: Path) -> None:
    result = _run("check", store, "--verdict", tmp_path / "verdict.json")
    assert result.exit_code == 3
    assert "collapse-recall: 16 of 40 canaries found" in result.output
    assert "memories/bream-proxy-headers: gone, and no asset names it as its source" in result.output
    assert "and 14 more" in result.output
    written = json.loads((tmp_path / "verdict.json").read_text())
    assert (written["status"], written["exit_code"]) == ("warn", 3)
    execute(store / "state.db", "DELETE FROM improve_cycle_metrics WHERE id > 5;")
    assert _run("check", store).exit_code == 0
    execute(store / "state.db", "DELETE FROM improve_cycle_metrics WHERE id > 1;")
    assert _run("check", store).exit_code == 4
    assert _run("check", store, "--unknown-ok").exit_code == 0


def test_show_for_people(store: Path) -> None:
    result = _run("show", store, "--rule", "as-akm")
    assert result.exit_code == 0
    assert "akm: warn (confidence high)" in result.output
    assert "collapse-recall, collapse-shrink" in result.output


def test_report(store: Path, tmp_path: Path) -> None:
    result = _run("report", store, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "out" / "verdict.json").is_file()


def test_merge_check(tmp_path: Path) -> None:
    for place, name, body, matter in (
        ("before", "a", "one two three", ""),
        ("before", "b", "four five six", ""),
        ("after", "ab", "one two three four five six", "xrefs: [memories/a, memories/b]\n"),
    ):
        path = tmp_path / place / "memories" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\ndescription: x\n{matter}---\n{body}\n")
    good = _run("merge-check", tmp_path / "before", tmp_path / "after")
    assert good.exit_code == 0, good.output
    assert "1 merges, 0 below the floor" in good.output
    path.write_text("---\nxrefs: [memories/a]\n---\none\n")
    bad = _run("merge-check", tmp_path / "before", tmp_path / "after", "--json")
    assert bad.exit_code == 3
    assert json.loads(bad.stdout)["vanished"] == ["memories/b"]
    both = _run("merge-check", tmp_path / "before")
    assert isinstance(both.exception, UsageError)


def test_bad_choices_are_usage_errors(store: Path) -> None:
    for arguments in (("--rule", "loud"), ("--rate", "0.9"), ("--window", "1")):
        result = _run("check", store, *arguments)
        assert isinstance(result.exception, UsageError), arguments
        assert result.exception.exit_code == 2


def test_calibrate_writes_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from akm_harbor.canary.simulate import calibration

    monkeypatch.setattr(calibration, "LEVELS", (0.8,))
    short = calibration.plan
    monkeypatch.setattr(calibration, "plan", lambda series: short(series, (0.8,))[:2])
    result = _run("calibrate", "-o", tmp_path / "c.json", "--series", 100)
    assert result.exit_code == 0, result.output
    found = calibration.read_calibration(tmp_path / "c.json")
    assert {one.what for one in found} == {"false-alarm", "power-first", "power"}
    assert all(one.recall == 0.8 for one in found)
