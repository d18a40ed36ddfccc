"""Do a trial's ledgers tell the same story? Disagreements, call by call.

Four things watch the same calls: the trajectory (`tool_calls`, what the model did), the plugin's ledger
(`plugin_events`, joined by call id), akm's own usage events (`akm_usage`, no call id: joined by what was
asked) and the probe (`model_requests`, what was offered). The plugin calls akm by itself too; such rows are
told apart by `akm_usage.automatic` and are no disagreement. In particular every opened asset gets an
automatic positive feedback, which says nothing about its usefulness.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.ab.use import Key, TrialUse, rows_by_trial, use_of, worked
from akm_harbor.trials.akm_calls import READ, bare_ref
from akm_harbor.trials.columns import AKM_USAGE, MODEL_REQUESTS, PLUGIN_EVENTS, TOOL_CALLS

MEANING: dict[str, str] = {
    "not-in-ledger": "the model called it, the plugin's ledger has no such call",
    "only-in-ledger": "the plugin's ledger has a call that the trajectory lacks",
    "tool-differs": "one call id, two tools",
    "status-differs": "one says that the call worked, the other that it failed",
    "ref-differs": "one call id, two assets",
    "order-differs": "the plugin's ledger has the calls in another order",
    "not-in-usage": "the call brought something back, and akm did not count it",
    "only-in-usage": "akm counted a use that is neither a call of the model nor one of the plugin's own",
    "ledger-absent": "the model called akm's tools, and this ledger has nothing at all",
    "not-in-stream": "the trajectory has a call that opencode did not print",
    "called-unoffered": "the model called a tool that no request offered",
}
"""What each code of a disagreement says."""

_OBSERVED = "tool_observation"
_FAILED = frozenset({"error", "failed", "blocked"})


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One call, or one row of a ledger, about which the ledgers differ.

    Attributes:
        call_id: where it has one.
        step: ATIF step, where it has one.
        code: a key of `MEANING`.
        subject: the call, as one would say it.
        says: (ledger, what it says) of each side.
    """

    root: str | None
    trial_path: str
    arm: str
    task: str
    call_id: str | None
    step: int | None
    code: str
    subject: str
    says: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The ledgers of one arm's attempts.

    Attributes:
        n_trials: attempts.
        n_compared: of which at least one other ledger could be held against the tool calls.
        n_calls: calls that had to do with akm, in the attempts compared.
        n_agreeing: of which no ledger disagrees about.
        automatic: usage event -> rows the plugin made by itself.
    """

    arm: str
    n_trials: int
    n_compared: int
    n_calls: int
    n_agreeing: int
    automatic: dict[str, int]
    disagreements: tuple[Disagreement, ...]


type Rows = Sequence[Mapping[str, Any]]


def reconcile_ledgers(dataset: Path, trials: Sequence[TrialUse]) -> tuple[Reconciliation, ...]:
    """Hold the ledgers of every attempt against each other, arm by arm.

    Args:
        dataset: a dataset's folder.
        trials: from `read_uses`.
    """
    keys = [t.key for t in trials]
    tables: list[dict[Key, list[dict[str, Any]]]] = [
        rows_by_trial(dataset, PLUGIN_EVENTS, keys),
        rows_by_trial(dataset, AKM_USAGE, keys),
        rows_by_trial(dataset, MODEL_REQUESTS, keys, ["root", "trial_path", "kind", "tools"]),
    ]
    captured = {key for table in tables[:2] for key in table} | {t.key for t in trials if t.called}
    calls = rows_by_trial(dataset, TOOL_CALLS, captured)
    found = []
    for arm in dict.fromkeys(t.arm for t in trials):
        mine = [t for t in trials if t.arm == arm]
        compared = [t for t in mine if t.called is not None and (t.called or any(t.key in x for x in tables[:2]))]
        lines: list[Disagreement] = []
        n_calls = n_agreeing = 0
        for trial in compared:
            own = sorted(calls.get(trial.key, []), key=lambda c: c["index"])
            events, usage, requests = (table.get(trial.key, []) for table in tables)
            told = disagreements(trial, own, events, usage, requests)
            touching = [c for c in own if c["akm_verb"]]
            disputed = {d.call_id for d in told}
            lines += told
            n_calls += len(touching)
            n_agreeing += sum(c["call_id"] not in disputed for c in touching)
        automatic = Counter(
            str(row["event_type"]) for t in mine for row in tables[1].get(t.key, []) if row["automatic"] is True
        )
        found.append(Reconciliation(arm, len(mine), len(compared), n_calls, n_agreeing, dict(automatic), tuple(lines)))
    return tuple(found)


def disagreements(trial: TrialUse, calls: Rows, events: Rows, usage: Rows, requests: Rows) -> list[Disagreement]:
    """What the ledgers of one attempt disagree about.

    Args:
        trial: whose.
        calls: its rows of `tool_calls`, in order.
        events: its rows of `plugin_events`; empty where there is no ledger.
        usage: its rows of `akm_usage`; empty where akm counted nothing.
        requests: its rows of `model_requests`; empty without a probe.
    """
    raw = [*_with_ledger(calls, events), *_with_usage(calls, usage)]
    raw += [*_with_stream(calls), *_with_probe(calls, requests)]
    return [Disagreement(trial.root, trial.trial_path, trial.arm, trial.task, *line) for line in raw]


type _Line = tuple[str | None, int | None, str, str, tuple[tuple[str, str], ...]]


def _named(call: Mapping[str, Any]) -> str:
    """A call as one would say it."""
    about = call["akm_query"] or ", ".join(list(call["akm_refs"] or [])[:1])
    return f"{call['tool']} {about}".strip()


def _line(call: Mapping[str, Any], code: str, *says: tuple[str, str]) -> _Line:
    return call["call_id"], call["step_id"], code, _named(call), says


def _with_ledger(calls: Rows, events: Rows) -> Iterable[_Line]:
    """The plugin's ledger, by call id."""
    if not events:
        yield from _absent(calls, "plugin_events")
        return
    observed = {e["call_id"]: e for e in events if e["event"] == _OBSERVED and e["call_id"]}
    own = {c["call_id"]: c for c in calls if c["call_id"]}
    joined = []
    for call in calls:
        event = observed.get(call["call_id"])
        if event is not None:
            joined.append(event["line"])
            yield from _same_call(call, event)
        elif str(call["tool"]).startswith("akm_"):
            yield _line(call, "not-in-ledger", ("tool_calls", "called"), ("plugin_events", "no such call id"))
    for call_id, event in observed.items():
        if call_id not in own:
            subject = f"{event['tool'] or 'a tool'} {', '.join(event['refs'] or [])}".strip()
            says = (("plugin_events", f"line {event['line']}"), ("tool_calls", "no such call id"))
            yield call_id, None, "only-in-ledger", subject, says
    if joined != sorted(joined):
        says = (("tool_calls", "by step"), ("plugin_events", "lines " + ", ".join(map(str, joined))))
        yield None, None, "order-differs", "the joined calls", says


def _absent(calls: Rows, ledger: str) -> Iterable[_Line]:
    """Said once an attempt: each of its calls is missing there."""
    mine = [c for c in calls if str(c["tool"]).startswith("akm_") and _asked_for(c) is not None]
    if mine:
        says = ((ledger, "nothing"), ("tool_calls", f"{len(mine)} akm call(s) that brought something back"))
        yield None, mine[0]["step_id"], "ledger-absent", ledger, says


def _same_call(call: Mapping[str, Any], event: Mapping[str, Any]) -> Iterable[_Line]:
    if event["tool"] and event["tool"] != call["tool"]:
        yield _line(call, "tool-differs", ("tool_calls", str(call["tool"])), ("plugin_events", str(event["tool"])))
    ran = worked(call)
    if event["status"] is not None and call["status"] is not None and ran is (event["status"] in _FAILED):
        says = ("tool_calls", "worked" if ran else "failed"), ("plugin_events", event["status"])
        yield _line(call, "status-differs", *says)
    asked = {bare_ref(ref) for ref in call["akm_refs"] or ()}
    noted = {bare_ref(ref) for ref in event["refs"] or ()}
    if call["akm_verb"] == "show" and noted and not asked & noted:
        says = (("tool_calls", ", ".join(sorted(asked))), ("plugin_events", ", ".join(sorted(noted))))
        yield _line(call, "ref-differs", *says)


def _asked_for(call: Mapping[str, Any]) -> tuple[str, str] | None:
    """What akm should have counted for a call that brought something back."""
    verb = call["akm_verb"]
    if verb in {None, READ, "remember"}:
        return None
    use = use_of(call)
    if use is None or not use.answered:
        return None
    if verb in {"search", "curate"}:
        return verb, (call["akm_query"] or "").strip()
    return (verb, use.refs[0]) if use.refs else None


def _with_usage(calls: Rows, usage: Rows) -> Iterable[_Line]:
    """What akm itself counted, by verb and what was asked: it has no call ids and whole seconds."""
    if not usage:
        yield from _absent(calls, "akm_usage")
        return
    # A curate that is neither surely the model's nor surely the plugin's settles nothing.
    by_model = [
        r
        for r in usage
        if r["source"] in {"user", None}
        and (r["automatic"] is False or (r["automatic"] is None and r["event_type"] != "curate"))
    ]
    counted: Counter[tuple[str, str]] = Counter()
    for row in by_model:
        kind = str(row["event_type"])
        if kind in {"search", "curate"}:
            counted[kind, (row["query"] or "").strip()] += row["entry_ref"] is None
        else:
            counted[kind, bare_ref(row["entry_ref"] or "")] += 1
    listed = {(str(r["event_type"]), (r["query"] or "").strip()) for r in by_model}  # with rows of entries only
    for call in calls:
        asked = _asked_for(call)
        if asked is None:
            continue
        if counted[asked] > 0:
            counted[asked] -= 1
        elif asked not in listed:
            yield _line(call, "not-in-usage", ("tool_calls", "brought something back"), ("akm_usage", "no such event"))
    failed = Counter(k for c in calls if c["akm_verb"] and (k := _asked_at_all(c)) is not None)
    for (kind, about), left in counted.items():
        surplus = left - failed[kind, about] if kind in {"search", "curate", "show", "feedback"} else 0
        if surplus > 0 and (kind, about) != ("feedback", ""):
            says = (("akm_usage", f"{surplus} more than was called"), ("tool_calls", "no such call"))
            yield None, None, "only-in-usage", f"akm {kind} {about}".strip(), says


def _asked_at_all(call: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a call that brought nothing back may still have been counted as."""
    if _asked_for(call) is not None:
        return None
    refs = [bare_ref(ref) for ref in call["akm_refs"] or ()]
    return str(call["akm_verb"]), (call["akm_query"] or "").strip() or (refs[0] if refs else "")


def _with_stream(calls: Rows) -> Iterable[_Line]:
    """What opencode printed, where it was read at all: it gives the status of each call."""
    if not any(c["status"] for c in calls):
        return
    for call in calls:
        if call["akm_verb"] and call["status"] is None and call["source"] == "trajectory.json":
            yield _line(call, "not-in-stream", ("trajectory.json", "called"), ("opencode.txt", "no such call id"))


def _with_probe(calls: Rows, requests: Rows) -> Iterable[_Line]:
    """The probe: a tool that no main request offered cannot have been called."""
    main = [r for r in requests if r["kind"] == "main"]
    if not main:
        return
    offered = {tool for r in main for tool in r["tools"] or ()}
    for call in calls:
        if str(call["tool"]).startswith("akm_") and call["tool"] not in offered:
            yield _line(call, "called-unoffered", ("tool_calls", "called"), ("model_requests", "never offered"))
