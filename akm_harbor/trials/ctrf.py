"""What a verifier says of its tests: CTRF (Common Test Report Format), and the corpus's own `details.json`."""

from typing import Any

from akm_harbor.tables.redact import MARGIN
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.values import as_dict, as_float, as_text, to_json

MESSAGE_CHARS = 2000
_STATUSES = frozenset({"passed", "failed", "skipped", "pending", "other"})


def read_tests(files: TrialFiles, verifier: str) -> list[dict[str, Any]]:
    """The tests of `<verifier>/ctrf.json` and the checks of `<verifier>/details.json` that are not among them.

    Rows come without the trial's columns; none when both files are absent.
    """
    tests = _ctrf(files, f"{verifier}/ctrf.json")
    named = {test["name"] for test in tests}
    checks = [check for check in _checks(files, f"{verifier}/details.json") if check["name"] not in named]
    rows = [*tests, *checks]
    for number, row in enumerate(rows):
        row["index"] = number
    return rows


def _checks(files: TrialFiles, rel: str) -> list[dict[str, Any]]:
    """The checks that the corpus's verifier helper noted, as tests with their complaints as the message."""
    if not files.has(rel):
        return []
    report = files.read_json(rel, "no test rows")
    checks = as_dict(report).get("checks")
    if not isinstance(checks, list):
        return []  # another verifier's file of that name
    rows: list[dict[str, Any]] = []
    for check in map(as_dict, checks):
        name, right = as_text(check.get("check")), check.get("ok")
        if name is None or not isinstance(right, bool):
            continue
        complaints = check.get("complaints")
        said = "\n".join(str(line) for line in complaints) if isinstance(complaints, list) else ""
        rows.append(_row(name, "passed" if right else "failed", None, said or None))
    return rows


def _row(name: str | None, status: str, seconds: float | None, message: str | None) -> dict[str, Any]:
    cut = None if message is None else message[: MESSAGE_CHARS + MARGIN]
    return {"index": 0, "name": name, "status": status, "seconds": seconds, "message": cut}


def _ctrf(files: TrialFiles, rel: str) -> list[dict[str, Any]]:
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
            _row(
                as_text(test.get("name")),
                status if status in _STATUSES else "other",
                None if duration is None else duration / 1000,  # CTRF says milliseconds
                message if isinstance(message, str) else None,
            )
        )
    if odd:
        files.problem(rel, "malformed-ctrf", f"{odd} test(s) without a known status", "rows kept, status other")
    return rows


def read_compliance(files: TrialFiles, verifier: str, limit: int = 8000) -> str | None:
    """`<verifier>/compliance.json` as text, secrets redacted; None when absent or not JSON."""
    value = files.read_json(f"{verifier}/compliance.json", "no compliance")
    return None if value is None else to_json(value, limit)
