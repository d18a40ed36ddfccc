"""Test results of a verifier, in the Common Test Report Format (CTRF)."""

from typing import Any

from akm_harbor.tables.redact import MARGIN
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.values import as_dict, as_float, as_text, to_json

MESSAGE_CHARS = 2000
_STATUSES = frozenset({"passed", "failed", "skipped", "pending", "other"})


def read_tests(files: TrialFiles, verifier: str) -> list[dict[str, Any]]:
    """The tests of `<verifier>/ctrf.json`, without the trial's columns; none when it is absent."""
    rel = f"{verifier}/ctrf.json"
    if not files.has(rel):
        return []
    report = files.read_json(rel, "no test rows")
    if report is None:
        return []
    tests = as_dict(as_dict(report).get("results")).get("tests")
    if not isinstance(tests, list):
        files.problem(rel, "malformed-ctrf", "results.tests is not a list", "no test rows")
        return []
    rows: list[dict[str, Any]] = []
    odd = 0
    for item in tests:
        test = as_dict(item)
        status = as_text(test.get("status"), 50)
        if not test or status not in _STATUSES:
            odd += 1
        duration = as_float(test.get("duration"))
        message = test.get("message") or test.get("trace")
        rows.append(
            {
                "index": len(rows),
                "name": as_text(test.get("name")),
                "status": status if status in _STATUSES else "other",
                # CTRF says milliseconds.
                "seconds": None if duration is None else duration / 1000,
                "message": message[: MESSAGE_CHARS + MARGIN] if isinstance(message, str) else None,
            }
        )
    if odd:
        files.problem(rel, "malformed-ctrf", f"{odd} test(s) without a known status", "rows kept, status other")
    return rows


def read_compliance(files: TrialFiles, verifier: str, limit: int = 8000) -> str | None:
    """`<verifier>/compliance.json` as text, secrets redacted; None when absent or not JSON."""
    value = files.read_json(f"{verifier}/compliance.json", "no compliance")
    return None if value is None else to_json(value, limit)
