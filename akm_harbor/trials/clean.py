"""What of a table must be looked through for secrets before it is written."""

import pyarrow as pa

from akm_harbor.tables.columns import Table
from akm_harbor.tables.redacted import redacted
from akm_harbor.trials.calls import HEAD_CHARS, QUERY_CHARS
from akm_harbor.trials.columns import TRIALS
from akm_harbor.trials.ctrf import MESSAGE_CHARS as TEST_MESSAGE_CHARS
from akm_harbor.trials.result import MESSAGE_CHARS

_IDENTITIES = frozenset(
    {"root", "trial_path", "trial_id", "trial_name", "job_id", "job_name", "submission", "task_name", "task_path"}
    | {"task_digest", "task_checksum", "result_sha256", "regrade_of", "call_id", "session_id", "source", "path"}
    # ... and columns that hold one of a few words of ours cannot hold one.
    | {"status", "own_status", "akm_verb", "token_source", "trajectory_source", "exception_cause"}
)
"""What tables and readers join by: a name that looks like a secret stays a name."""
_SAFE = frozenset(TRIALS.names) - {
    *("exception_message", "rewards_json", "timeouts_json", "resources_json", "compliance_json", "agent_kwargs_json"),
    *("agent_version", "model_name", "environment", "arm", "bundle", "context", "title", "install"),
}
"""Trials columns without free text, left out to save time."""
_CUTS = {
    "trials": {"exception_message": MESSAGE_CHARS},
    "tool_calls": {"output_head": HEAD_CHARS, "error": HEAD_CHARS, "akm_query": QUERY_CHARS},
    "tests": {"message": TEST_MESSAGE_CHARS},
}
_JSON = frozenset({"arguments_json"})
"""JSON whose names have not been looked at while reading."""


def clean(table: Table, rows: pa.Table) -> pa.Table:
    """The rows without secrets, texts cut to their length."""
    keep = _SAFE if table is TRIALS else _IDENTITIES
    return redacted(rows, keep=keep, cuts=_CUTS.get(table.name), names=_JSON)
