"""Real kernels through papermill: success must mean that the notebook ran to its end."""

import errno
import json

import nbformat
import papermill
import pytest
from zmq import ZMQError

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.report.notebook_html import export_html
from akm_harbor.report.notebooks import NotebookError, find_notebook, read_notebook, run_notebook
from akm_harbor.report.offline import external_references
from akm_harbor.resources import resource


@pytest.fixture
def write(tmp_path):
    def make(*sources, kernelspec=None, name="n.ipynb"):
        made = nbformat.v4.new_notebook()
        if kernelspec:
            made.metadata["kernelspec"] = kernelspec
        made.cells.append(nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["parameters"]}))
        made.cells += [nbformat.v4.new_code_cell(s) for s in sources]
        nbformat.write(made, tmp_path / name)
        return tmp_path / name

    return make


def texts(path):
    cells = nbformat.read(path, as_version=4).cells
    return [o.get("text", o.get("data", {}).get("text/plain", "")) for c in cells for o in c.get("outputs", [])]


def test_run_with_parameters_into_a_folder_with_braces(write, tmp_path):
    source = write("print(x, type(x).__name__)", kernelspec={"name": "gone-kernel", "display_name": ".venv"})
    out = tmp_path / "{job}" / "out.ipynb"
    run = run_notebook(source, out, {"x": ("a", 2)})
    assert run.output == out
    assert texts(out) == ["['a', 2] list\n"]
    found = json.loads(out.read_text())
    assert found["metadata"]["kernelspec"] == {"name": "python3", "display_name": "Python 3", "language": "python"}
    assert found["metadata"]["akm_harbor"]["parameters"] == {"x": ["a", 2]}
    assert "sentinel" not in out.read_text()
    assert str(tmp_path) not in out.read_text()


@pytest.mark.parametrize("parameters", [{}, {"x": 2}])  # papermill puts them into a cell of its own
def test_failing_cell_is_named_and_the_rest_kept(write, tmp_path, parameters):
    source = write("print('before')", "raise RuntimeError('no such luck')", "print('after')")
    with pytest.raises(NotebookError, match="cell 3 failed: RuntimeError: no such luck"):
        run_notebook(source, tmp_path / "out.ipynb", parameters)
    assert "before\n" in texts(tmp_path / "out.ipynb")
    assert "after\n" not in texts(tmp_path / "out.ipynb")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys; sys.exit(0)", "ended before its last cell|SystemExit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "kernel died"),
    ],
)
def test_an_end_that_papermill_may_call_success(write, tmp_path, source, message):
    with pytest.raises(NotebookError, match=message):
        run_notebook(write(source, "print('after')"), tmp_path / "out.ipynb")
    assert (tmp_path / "out.ipynb").is_file()


def test_slow_cell_is_stopped(write, tmp_path):
    with pytest.raises(NotebookError, match=r"a cell ran longer than 1 s"):
        run_notebook(write("import time; time.sleep(60)"), tmp_path / "out.ipynb", cell_timeout=1)


def test_a_long_output_is_kept_to_its_end(write, tmp_path):
    run = run_notebook(write("for i in range(20_000): print(i)\nprint('y' * 1_000_000, 'END')"), tmp_path / "out.ipynb")
    printed = "".join(texts(run.output))
    assert len(printed) > 1_100_000
    assert printed.endswith("END\n")


def test_a_kernel_that_loses_the_race_for_its_ports_gets_one_more(write, tmp_path, monkeypatch):
    real, left = papermill.execute_notebook, [1]

    def taken(*args, **kwargs):
        if left:
            left.pop()
            raise ZMQError(errno.EADDRINUSE)
        return real(*args, **kwargs)

    monkeypatch.setattr(papermill, "execute_notebook", taken)
    run = run_notebook(write("print(x)"), tmp_path / "out.ipynb", {"x": 7})
    assert texts(run.output) == ["7\n"]


def test_bad_requests_start_no_kernel(write, tmp_path):
    out = tmp_path / "out.ipynb"
    with pytest.raises(UsageError, match="no parameter 'y'"):
        run_notebook(write(), out, {"y": 1})
    with pytest.raises(UsageError, match="x is a set"):
        run_notebook(write(), out, {"x": {1}})
    with pytest.raises(UsageError, match="no kernel 'cobol'"):
        run_notebook(write(), out, kernel="cobol")
    (tmp_path / "bad.ipynb").write_text("{")
    with pytest.raises(AkmHarborError, match="cannot be read as a notebook"):
        read_notebook(tmp_path / "bad.ipynb")
    assert not out.exists()


def test_find_by_name_or_path(write):
    assert find_notebook("ab_report").name == "ab_report.ipynb"
    assert find_notebook(str(write())) == write()
    with pytest.raises(UsageError, match="Did you mean ab_report"):
        find_notebook("ab_reprot")
    with pytest.raises(UsageError, match="no such notebook"):
        find_notebook("nowhere.ipynb")


def test_html_is_offline_and_without_code(write, tmp_path):
    source = write(
        "from IPython.display import HTML, display\ndisplay(HTML('<b>shown</b>'))\nsecret_code = 1",
        "from io import BytesIO\nimport matplotlib.image as m\nimport numpy as np\nfrom IPython.display import Image\n"
        "b = BytesIO(); m.imsave(b, np.zeros((2, 2)))\nImage(b.getvalue())",
    )
    run = run_notebook(source, tmp_path / "out.ipynb", {"x": "<script>1</script>"})
    page = export_html(run.output, tmp_path / "out.html").read_text()
    assert "<b>shown</b>" in page
    assert "data:image/png;base64" in page
    assert "secret_code" not in page
    assert "<script" not in page
    assert external_references(page) == []


def test_html_with_an_outside_image_is_refused(write, tmp_path):
    source = write("from IPython.display import HTML\nHTML('<img src=\"https://x.test/a.png\">')")
    run = run_notebook(source, tmp_path / "out.ipynb")
    with pytest.raises(AkmHarborError, match="outside the page"):
        export_html(run.output, tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()


def test_shipped_notebooks_are_clean():
    for path in resource("notebooks").glob("*.ipynb"):
        found = nbformat.read(path, as_version=4)
        nbformat.validate(found)
        assert found.metadata["kernelspec"]["name"] == "python3"
        assert found.metadata["kernelspec"]["display_name"] == "Python 3"
        code = [c for c in found.cells if c.cell_type == "code"]
        assert all(not c.outputs and c.execution_count is None for c in code)
        assert sum("parameters" in c.metadata.get("tags", []) for c in code) == 1
