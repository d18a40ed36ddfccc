"""The machine-readable verdict, fit for cron and CI."""

from typing import Any

import akm_harbor
from akm_harbor.canary.analysis import CanaryResult, StoreResult

EXIT_CODES = {"pass": 0, "warn": 3, "unknown": 4}
"""What `canary check` exits with: 0 goes on, 3 an alert, 4 not enough history to judge."""


def verdict(result: CanaryResult) -> dict[str, Any]:
    """The verdict as plain JSON values."""
    settings = result.settings
    return {
        "kind": "canary",
        "akm_harbor": akm_harbor.__version__,
        "status": result.status,
        "exit_code": EXIT_CODES[result.status],
        "rule": result.rule.value,
        "false_alarm_rate": settings.rate,
        "window": settings.window,
        "sources": list(result.sources),
        "problems": len(result.problems),
        "stores": [_store(store) for store in result.stores],
    }


def _store(store: StoreResult) -> dict[str, Any]:
    newest = store.newest
    return {
        "store": store.label,
        "status": store.status,
        "confidence": store.confidence,
        "message": store.message,
        "ts": newest["ts"].isoformat(),
        "run_id": newest["run_id"],
        "canary_set_id": newest["canary_set_id"],
        "cycles": len(store.rows),
        "mean_recall": newest["mean_recall"],
        "n_hits": newest["n_hits"],
        "n_canaries": newest["n_canaries"],
        "distinct_content_ratio": newest["distinct_content_ratio"],
        "store_total": newest["store_total"],
        "alerts": [
            {
                "kind": finding.alert.kind.value,
                "detail": finding.alert.detail,
                "p": finding.alert.p,
                "metrics": dict(finding.alert.metrics),
                "next": finding.next,
                "lost": [
                    {
                        "anchor_ref": lost.anchor_ref,
                        "query": lost.query,
                        "last_found": lost.last_found.isoformat() if lost.last_found else None,
                        "why": lost.why,
                        "replaced_by": lost.replaced_by,
                    }
                    for lost in finding.lost
                ],
            }
            for finding in store.findings
            if finding.position == len(store.rows) - 1
        ],
    }
