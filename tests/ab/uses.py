"""Attempts and their uses of the bundle, as `read_uses` would give them."""

from typing import Any

from akm_harbor.ab.use import TrialUse, Use

GOLD = "knowledge/gold"


def lookup(index: int, *refs: str, verb: str = "search", **over: Any) -> Use:
    """A look-up that brought these assets."""
    rank = refs.index(GOLD) + 1 if GOLD in refs else None
    values = {"refs": refs, "gold_rank": rank, "answered": bool(refs), **over}
    return Use(index, index + 2, f"call_{index}", "lookup", f"akm_{verb}", verb, "query", **values)


def opening(index: int, ref: str = GOLD, **over: Any) -> Use:
    """An asset opened."""
    values = {"refs": (ref,), "gold_rank": 1 if ref == GOLD else None, **over}
    return Use(index, index + 2, f"call_{index}", "open", "akm_show", "show", ref, **values)


def write(index: int, *words: str, step: int | None = None) -> Use:
    """A write whose text holds these withheld words."""
    return Use(index, index + 2 if step is None else step, f"call_{index}", "write", "bash", "", "echo", words=words)


def attempt(*uses: Use, **over: Any) -> TrialUse:
    """An attempt of the treatment, unless told otherwise."""
    values: dict[str, Any] = {
        "root": "jobs",
        "trial_path": f"job/{over.get('trial_name', 'trial')}",
        "trial_name": "trial",
        "arm": "akm",
        "task": "task",
        "family": "family",
        "score": 0.0,
        "delivered": True,
        "reasons": (),
        "offered": True,
        "exposed": True,
        "given": False,
        "called": any(u.kind != "write" for u in uses),
        "gold": (GOLD,),
        "withheld": ("--seal", "wax"),
        "uses": uses,
    }
    return TrialUse(**{**values, **over})
