"""One thread, unless somebody said otherwise, and in time."""

import os
import subprocess
import sys

from akm_harbor.memory.threads import one_thread


def test_what_is_set_stays(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    one_thread()
    assert (os.environ["OPENBLAS_NUM_THREADS"], os.environ["OMP_NUM_THREADS"]) == ("7", "1")


def test_importing_it_imports_no_numeric_library():
    code = "import akm_harbor.memory.threads, sys; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
