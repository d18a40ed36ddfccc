"""Run a notebook with papermill so that success means that it ran to its end.

papermill is kept behind this one module. What it lets pass is refused here: a parameter the notebook does
not have, a cell that ends the kernel with `sys.exit(0)`, a kernel that was killed, braces in a path.
"""

import difflib
import logging
import os
import secrets
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

import akm_harbor
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.report.parameters import check_names, declared, encode
from akm_harbor.report.verdict import write_output
from akm_harbor.resources import resource

SENTINEL = "akm-harbor-sentinel"
_ADDED = {"injected-parameters", "papermill-error-cell-tag"}
"""Tags of the cells that papermill adds."""
KERNEL = "python3"


class NotebookError(AkmHarborError):
    """A notebook did not run to its end; what it got to is in the output file."""


@dataclass(frozen=True, slots=True)
class NotebookRun:
    """A notebook that ran to its end.

    Attributes:
        output: the executed notebook.
        parameters: what it was given, as the kernel saw it.
        seconds: wall time of the run.
    """

    output: Path
    parameters: dict[str, Any]
    seconds: float


def run_notebook(
    source: Path,
    output: Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    kernel: str = KERNEL,
    cell_timeout: float | None = None,
    progress: bool = False,
    files: Path | None = None,
) -> NotebookRun:
    """Run a notebook from a file into a file.

    The output is written whole at the end, also after a failure, when it holds the cells so far.

    Args:
        source: the notebook.
        output: where the executed notebook goes.
        parameters: values for its `parameters` cell.
        kernel: kernel to use, whatever the notebook names.
        cell_timeout: longest time for one cell, seconds.
        progress: show papermill's progress bar.
        files: where a notebook with a parameter `out` puts its own files, unless that is given.

    Raises:
        UsageError: a parameter that does not exist or cannot be encoded, or a kernel that does not exist.
        NotebookError: a cell failed, the kernel died, or the run ended before the last cell.
        AkmHarborError: a notebook that cannot be read, or an output that cannot be written.
    """
    notebook = read_notebook(source)
    known = declared(notebook)
    default = {"out": files} if files is not None and "out" in known else {}
    given = {name: encode(value, name) for name, value in {**default, **(parameters or {})}.items()}
    check_names(given, known)
    _check_kernel(kernel)
    token = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="akm-harbor-") as folder:
        work = Path(folder)
        notebook.cells.append(_sentinel(work / "reached", token))
        nbformat.write(notebook, work / "in.ipynb")
        failure, seconds = _execute(work, given, kernel, cell_timeout, progress=progress)
        reached = work / "reached"
        complete = reached.is_file() and reached.read_text() == token
        executed = _finished(work / "out.ipynb", source, given, kernel)
        if executed is not None:
            write_output(output, nbformat.writes(executed) + "\n")
    if failure is not None:
        raise NotebookError(failure, path=source, hint=f"The cells so far are in {output}.")
    if not complete:
        raise NotebookError(
            "ended before its last cell, without an error (does a cell call sys.exit?)",
            path=source,
            hint=f"The cells so far are in {output}.",
        )
    return NotebookRun(output, given, seconds)


def _check_kernel(name: str) -> None:
    from jupyter_client.kernelspec import KernelSpecManager

    known = sorted(KernelSpecManager().find_kernel_specs())
    if name not in known:
        raise UsageError(f"there is no kernel {name!r}", hint=f"There are {', '.join(known) or 'none'}.")


def find_notebook(name: str) -> Path:
    """A shipped notebook by its name, or any notebook by its path.

    Raises:
        UsageError: neither.
    """
    given = Path(name)
    if given.is_file():
        return given
    shipped = {p.stem: p for p in sorted(resource("notebooks").glob("*.ipynb"))}
    if given.suffix == ".ipynb":
        raise UsageError("no such notebook", path=given, hint=f"Those shipped are {', '.join(shipped)}.")
    if name in shipped:
        return shipped[name]
    close = difflib.get_close_matches(name, shipped, n=3, cutoff=0.5)
    like = f"Did you mean {' or '.join(close)}? " if close else ""
    raise UsageError(f"no notebook {name!r}", hint=f"{like}There are {', '.join(shipped)}.")


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a notebook file.

    Raises:
        AkmHarborError: no such file, or not a notebook.
    """
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError, AttributeError, KeyError, nbformat.ValidationError) as error:
        raise AkmHarborError(f"cannot be read as a notebook ({error})", path=path) from error
    return notebook


def _sentinel(reached: Path, token: str) -> nbformat.NotebookNode:
    """A last cell that proves that all before it ran; it is taken out of the output again."""
    source = f"__import__('pathlib').Path({str(reached)!r}).write_text({token!r});"
    return nbformat.v4.new_code_cell(source, metadata={"tags": [SENTINEL]})


def _execute(
    work: Path, parameters: Mapping[str, Any], kernel: str, cell_timeout: float | None, *, progress: bool
) -> tuple[str | None, float]:
    """Run papermill on files whose names hold no braces; return what went wrong, and the seconds."""
    import time

    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    logging.getLogger("papermill").setLevel(logging.ERROR)
    started = time.monotonic()
    failure = None
    try:
        _papermill(work, parameters, kernel, cell_timeout, progress=progress)
    except papermill.PapermillExecutionError as error:
        failure = f"cell {_failed_cell(work / 'out.ipynb')} failed: {error.ename}: {error.evalue}"
    except DeadKernelError:
        failure = "the kernel died (out of memory, or killed)"
    except CellTimeoutError:
        failure = f"a cell ran longer than {cell_timeout:g} s"
    return failure, time.monotonic() - started


def _failed_cell(file: Path) -> int:
    """The place of the failed cell in the notebook as written, without what papermill put before it."""
    cells = nbformat.read(file, as_version=4).cells
    own = [c for c in cells if not _ADDED.intersection(c.metadata.get("tags", []))]
    return next(n for n, c in enumerate(own, 1) if c.metadata.get("papermill", {}).get("status") == "failed")


def _papermill(
    work: Path, parameters: Mapping[str, Any], kernel: str, cell_timeout: float | None, *, progress: bool
) -> None:
    """One run; a kernel that lost the race for its ports gets one more."""
    import papermill
    from zmq import ZMQError

    def run() -> None:
        papermill.execute_notebook(
            str(work / "in.ipynb"),
            str(work / "out.ipynb"),
            parameters=dict(parameters),
            kernel_name=kernel,
            language="python",
            cwd=os.getcwd(),  # noqa: PTH109
            progress_bar=progress,
            log_output=False,
            execution_timeout=cell_timeout,
            extra_arguments=["--IPKernelApp.log_level=40"],  # ipykernel warns about TCP on every start
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zmq and jupyter_client warn about the event loop
        try:
            run()
        except ZMQError:
            run()


def _finished(file: Path, source: Path, parameters: Mapping[str, Any], kernel: str) -> nbformat.NotebookNode | None:
    """The executed notebook with the sentinel out and the provenance in; None if there is none."""
    if not file.is_file():
        return None
    notebook = nbformat.read(file, as_version=4)
    notebook.cells = [c for c in notebook.cells if SENTINEL not in c.metadata.get("tags", [])]
    spec = notebook.metadata.get("kernelspec", {})
    notebook.metadata["kernelspec"] = {
        "name": kernel,
        "display_name": "Python 3" if kernel == KERNEL else spec.get("display_name", kernel),
        "language": "python",
    }
    papermill = notebook.metadata.setdefault("papermill", {})
    papermill.update(input_path=source.name, output_path=None)
    notebook.metadata["akm_harbor"] = {
        "version": akm_harbor.__version__,
        "notebook": source.name,
        "parameters": dict(parameters),
    }
    return notebook
