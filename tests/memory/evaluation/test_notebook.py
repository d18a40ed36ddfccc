"""The notebook on the shipped sample, by papermill with plain strings and with nothing given."""

import json
import subprocess
import sys

import nbformat
import pytest

from akm_harbor.errors import UsageError
from akm_harbor.memory.evaluation.notebook import SAMPLE, load
from akm_harbor.memory.evaluation.page import SECTIONS
from akm_harbor.report.notebook_html import export_html
from akm_harbor.report.notebooks import run_notebook
from akm_harbor.report.offline import external_references
from akm_harbor.resources import resource

NOTEBOOK = ("notebooks", "memory_eval.ipynb")


def numbers(folder):
    return json.loads((folder / "verdict.json").read_text())


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    out = tmp_path_factory.mktemp("expected")
    load("", replicates=500, out=str(out))
    return numbers(out)


def test_the_sample_says_what_it_is(expected):
    assert [p["studies"] for p in expected["panels"]] == [
        ["made-up questions, stub reader"],
        ["the same, judged by a stub"],
    ]
    assert {p["protocol"]["reader_model"] for p in expected["panels"]} == {"openai/stub-reader"}
    assert not expected["comparable"]
    readme = resource("notebooks", "sample", "memory", "README.md").read_text()
    assert "stub" in readme


def test_with_nothing_given_the_sample_is_shown_in_one_offline_page(expected, tmp_path):
    notebook = resource(*NOTEBOOK)
    run = run_notebook(notebook, tmp_path / "memory_eval.ipynb", {"out": tmp_path, "replicates": 500})
    assert numbers(tmp_path) == expected
    page = export_html(run.output, tmp_path / "page.html").read_text()
    assert external_references(page) == []
    assert "akm-harbor-judge/1" in page
    shown = nbformat.read(notebook, as_version=4).cells
    assert all(any(f'show(made, "{name}")' in c.source for c in shown) for name in ("headline", *SECTIONS))


def test_papermill_command_line_with_plain_strings(expected, tmp_path):
    given = {"source": str(resource(*SAMPLE)), "level": "0.95", "replicates": "500", "out": str(tmp_path / "o")}
    raw = [part for name, value in given.items() for part in ("-r", name, value)]
    command = [sys.executable, "-m", "papermill", resource(*NOTEBOOK), tmp_path / "out.ipynb", *raw]
    subprocess.run([str(c) for c in command], check=True, capture_output=True, cwd=tmp_path)
    assert numbers(tmp_path / "o") == expected


def test_the_command_gives_the_same_numbers(expected, tmp_path):
    given = [str(resource(*SAMPLE)), "-o", str(tmp_path / "o"), "--replicates", "500"]
    command = [sys.executable, "-c", "from akm_harbor.cli import main; main()", "memory", "report", *given]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert numbers(tmp_path / "o") == expected
    assert external_references((tmp_path / "o" / "report.html").read_text()) == []


def test_parameters_that_are_none(tmp_path):
    with pytest.raises(UsageError, match="not a number"):
        load("", level="much", out=str(tmp_path))
    with pytest.raises(UsageError, match="no arm 'bm52'"):
        load("", baseline="bm52", replicates=100, out=str(tmp_path))
