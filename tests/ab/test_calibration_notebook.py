"""The calibration notebook gives the command line's numbers, whoever runs it."""

import json
import subprocess
import sys

import nbformat
import pytest

from akm_harbor.ab.calibration_page import SECTIONS
from akm_harbor.cli import main
from akm_harbor.report.notebook_html import export_html
from akm_harbor.report.notebooks import NotebookError, run_notebook
from akm_harbor.report.offline import external_references
from akm_harbor.resources import resource, sample_jobs


def numbers(folder):
    """The calibration without what differs by place and time."""
    found = json.loads((folder / "calibration.json").read_text())
    found.pop("manifest")
    return found


def run(monkeypatch, *args):
    monkeypatch.setattr(sys, "argv", ["akm-harbor", *map(str, args)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


@pytest.fixture(scope="module")
def notebook():
    return resource("notebooks", "corpus_calibration.ipynb")


def test_every_way_gives_the_same_numbers(notebook, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, "ab", "calibrate", sample_jobs(), "-o", tmp_path / "cli") == 0
    expected = numbers(tmp_path / "cli")
    assert expected["verdicts"] == {"discriminating": 0, "guessable": 0, "saturated": 0, "unknown": 6}
    assert [c["grouping"] for c in expected["compositions"]] == ["domain", "knowledge", "shape", "slice", "family"]

    executed = run_notebook(notebook, tmp_path / "default.ipynb", {"out": tmp_path / "default"})
    assert numbers(tmp_path / "default") == expected
    page = export_html(executed.output, tmp_path / "page.html").read_text()
    assert external_references(page) == []
    assert "Of 6 tasks: 6 unknown." in page

    given = {"source": str(sample_jobs()), "low": "0.2", "high": "0.8", "level": "0.95", "strip_prefix": "False"}
    raw = [part for name, value in {**given, "out": str(tmp_path / "raw")}.items() for part in ("-r", name, value)]
    command = [sys.executable, "-m", "papermill", str(notebook), str(tmp_path / "out.ipynb"), *raw]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert numbers(tmp_path / "raw") == expected


def test_from_the_command_line_and_with_a_bad_parameter(notebook, tmp_path, monkeypatch):
    given = ("-p", f"out={tmp_path / 'o'}", "-p", "low=0.3")
    assert run(monkeypatch, "report", "notebook", "corpus_calibration", "-o", tmp_path, *given) == 0
    assert numbers(tmp_path / "o")["lines"]["low"] == 0.3
    with pytest.raises(NotebookError, match="no arm 'contrl'"):
        run_notebook(notebook, tmp_path / "x.ipynb", {"baseline": "contrl"})


def test_every_section_is_shown(notebook):
    shown = [c.source for c in nbformat.read(notebook, as_version=4).cells]
    assert all(any(f'show(made, "{name}")' in source for source in shown) for name in ("headline", *SECTIONS))
