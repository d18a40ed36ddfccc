"""The notebook three ways on the shipped sample: the same numbers each time."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from akm_harbor.ab.notebook import compare
from akm_harbor.ab.page import SECTIONS
from akm_harbor.ab.run import report
from akm_harbor.report.notebook_html import export_html
from akm_harbor.report.notebooks import NotebookError, run_notebook
from akm_harbor.report.offline import external_references
from akm_harbor.resources import resource

SAMPLE = resource("notebooks", "sample", "ab-jobs")


def numbers(folder):
    """The verdict without what differs by place and time."""
    found = json.loads((folder / "verdict.json").read_text())
    found.pop("manifest")
    for line in found["reconciled"]:
        line["job"] = line["job"].rpartition("/")[2]
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    out = tmp_path_factory.mktemp("expected")
    report([SAMPLE], "pre-opencode", "akm-opencode", out)
    return numbers(out)


def test_sample_jobs_have_known_rewards(expected):
    assert (expected["headline"]["baseline"], expected["headline"]["treatment"]) == pytest.approx((13 / 24, 14 / 24))
    assert expected["outcome"] == "no-clear-difference"
    assert expected["headline"]["n_tasks"] == 8


def test_default_parameters_show_the_sample(expected, tmp_path):
    notebook = resource("notebooks", "ab_report.ipynb")
    run = run_notebook(notebook, tmp_path / "ab_report.ipynb", {"out": tmp_path})
    assert numbers(tmp_path) == expected
    page = export_html(run.output, tmp_path / "page.html").read_text()
    assert external_references(page) == []
    assert "a difference of +4.2 points" in page
    shown = nbformat.read(notebook, as_version=4).cells
    assert all(any(f'show(made, "{name}")' in c.source for c in shown) for name in ("headline", *SECTIONS))


def lines_of(*command, folder):
    done = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, cwd=folder)
    return done.stdout


def test_jupyter_papermill_and_the_command_line_give_the_same_numbers(expected, tmp_path):
    """One verdict.json each: the notebook as somebody runs it in JupyterLab, papermill with text, the command."""
    notebook = resource("notebooks", "ab_report.ipynb")
    by_hand = nbformat.read(notebook, as_version=4)
    (parameters,) = (c for c in by_hand.cells if "parameters" in c.metadata.get("tags", []))
    parameters.source += f"\nsource = {str(SAMPLE)!r}\nout = {str(tmp_path / 'lab')!r}"
    nbformat.write(by_hand, tmp_path / "mine.ipynb")
    python = [sys.executable, "-m"]
    lines_of(*python, "jupyter", "execute", "--inplace", tmp_path / "mine.ipynb", folder=tmp_path)
    given = {"source": SAMPLE, "level": "0.95", "strict": "False", "margin": "0", "out": tmp_path / "papermill"}
    raw = [part for name, value in given.items() for part in ("-r", name, value)]
    lines_of(*python, "papermill", notebook, tmp_path / "out.ipynb", *raw, folder=tmp_path)
    arms = ["--baseline", "pre-opencode", "--treatment", "akm-opencode"]
    command = Path(sys.executable).with_name("akm-harbor")
    printed = lines_of(command, "report", "ab", SAMPLE, *arms, "-o", tmp_path / "cli", folder=tmp_path)
    assert {name: numbers(tmp_path / name) == expected for name in ("lab", "papermill", "cli")} == {
        "lab": True,
        "papermill": True,
        "cli": True,
    }
    assert "a difference of +4.2 points" in printed
    outputs = nbformat.read(tmp_path / "mine.ipynb", as_version=4).cells
    assert any("a difference of +4.2 points" in str(c.get("outputs")) for c in outputs)


def test_bad_arm_fails_in_the_notebook_with_the_same_message(tmp_path):
    with pytest.raises(NotebookError, match="no arm 'pre-opncode'"):
        run_notebook(resource("notebooks", "ab_report.ipynb"), tmp_path / "x.ipynb", {"baseline": "pre-opncode"})


def test_several_sources_with_commas(expected, tmp_path):
    source = f"{SAMPLE / 'ab-baseline'}, {SAMPLE / 'ab-treatment'}"
    compare(source, "pre-opencode", "akm-opencode", out=str(tmp_path))
    assert numbers(tmp_path) == expected
