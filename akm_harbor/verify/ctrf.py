"""A pytest plugin that writes a CTRF report; the hooks are found by their names."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from akm_harbor.verify.outcome import BROKEN, logs_dir, note, write_json

_STATUS = {"passed": "passed", "failed": "failed", "skipped": "skipped"}


class CtrfPlugin:
    """Collects one result per test and writes `ctrf.json` when the session ends."""

    def __init__(self, version: str) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.started = time.time()
        self.version = version
        self.broken = False

    def pytest_runtest_makereport(self, call: Any) -> None:
        """A test that cannot tell right from wrong says so by its exception."""
        if call.excinfo is not None and call.excinfo.typename == "BrokenVerifierError":
            self.broken = True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst phase of each test."""
        test = self.tests.setdefault(report.nodeid, {"name": report.nodeid, "status": "passed", "duration": 0})
        test["duration"] += round(report.duration * 1000)
        if report.outcome != "passed" and test["status"] != "failed":
            test["status"] = _STATUS.get(report.outcome, "other")
            message = str(getattr(report, "longreprtext", "")).strip()
            test["message"] = message.splitlines()[-1][:500] if message else ""

    def pytest_collectreport(self, report: Any) -> None:
        """A module that cannot be collected is a failed test of its own."""
        if report.failed:
            message = str(getattr(report, "longreprtext", "")).strip()
            self.tests[report.nodeid] = {
                "name": report.nodeid or "collection", "status": "failed", "duration": 0, "message": message[-500:],
            }  # fmt: skip

    def pytest_sessionfinish(self) -> None:
        """Write the report."""
        tests = list(self.tests.values())
        summary: dict[str, Any] = {"tests": len(tests)}
        for status in ("passed", "failed", "pending", "skipped", "other"):
            summary[status] = sum(test["status"] == status for test in tests)
        summary["start"], summary["stop"] = round(self.started * 1000), round(time.time() * 1000)
        results = {"tool": {"name": "pytest", "version": self.version}, "summary": summary, "tests": tests}
        write_json(logs_dir() / "ctrf.json", {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results})
        for test in tests:
            note(test["name"], [test.get("message") or test["status"]] if test["status"] != "passed" else [])


def run_pytest(tests: Path) -> int:
    """Run a task's test modules, out of reach of anything the workspace could shadow.

    Returns:
        pytest's own exit code: 0 all passed, 1 some failed, 2 and up it could not tell.
    """
    import pytest

    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    plugin = CtrfPlugin(pytest.__version__)
    options = ["-q", "--tb=line", "--color=no", "-p", "no:cacheprovider", f"--rootdir={tests}", "-c", os.devnull]
    code = int(pytest.main([*options, str(tests)], plugins=[plugin]))
    return BROKEN if plugin.broken else code
