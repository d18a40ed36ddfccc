"""What the agent of each trial did with the bundle: its look-ups, openings and writes, in order.

Everything said about engagement (funnel, failure modes, attribution, complier effect) is read
from these values, so that no two of them can count differently.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.delivery import as_declared, reasons_of, verdict_of
from akm_harbor.ab.policies import Policy, scores
from akm_harbor.tables import Table, read_table
from akm_harbor.trials.akm_calls import READ, bare_ref
from akm_harbor.trials.columns import MODEL_REQUESTS, TASKS, TOOL_CALLS
from akm_harbor.verify.events import Event, events_of_call
from akm_harbor.verify.trajectory import Call

type Kind = Literal["lookup", "open", "write", "other"]
type Key = tuple[str | None, str]
"""A trial: the collected input and the path below it."""

_CALLS = [
    *("root", "trial_path", "index", "step_id", "call_id", "tool", "status", "arguments_json", "output_chars"),
    *("output_head", "error", "akm_verb", "akm_query", "akm_refs", "gold_rank"),
]
_TEXT = 200


@dataclass(frozen=True, slots=True)
class Use:
    """One tool call that looked into the bundle, or wrote.

    Attributes:
        index: 0-based place among the trial's tool calls.
        step: ATIF step; None where nothing numbers it.
        kind: `lookup` (search, curate, a listing of the bundle), `open` (show, or reading an asset's
            file), `write`, or `other` (feedback, remember).
        tool: the tool called.
        verb: akm's verb, or `read`; empty for a write.
        text: query, ref, path or command, cut.
        refs: assets that came back (lookup) or were opened, without their bundle, in rank order.
        gold_rank: 1-based rank of the gold asset among them.
        answered: it brought something back.
        words: the task's withheld words among the arguments, for a write.
    """

    index: int
    step: int | None
    call_id: str | None
    kind: Kind
    tool: str
    verb: str
    text: str
    refs: tuple[str, ...] = ()
    gold_rank: int | None = None
    answered: bool = True
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialUse:
    """One attempt: what reached it, what it did with that, and how it ended.

    Attributes:
        family: the task's family, where the tasks table knows it.
        score: under the error policy; None if left out.
        delivered: the delivery verdict, with its reason codes.
        offered: akm tools were offered to the model; None if no probe saw it.
        exposed: a main request carried the plugin's text, or the bundle's (oracle context).
        given: a main request carried the bundle's text, so that the notes needed no looking up.
        called: it called akm or read the bundle; None if its tool calls are not known.
        gold: the assets that answer the task; empty if the task names none.
        withheld: words of the answer that only the bundle tells.
        uses: in order; empty where nothing was called and nothing given.
    """

    root: str | None
    trial_path: str
    trial_name: str
    arm: str
    task: str
    family: str | None
    score: float | None
    delivered: bool | None
    reasons: tuple[str, ...]
    offered: bool | None
    exposed: bool | None
    given: bool
    called: bool | None
    gold: tuple[str, ...]
    withheld: tuple[str, ...]
    uses: tuple[Use, ...]

    @property
    def key(self) -> Key:
        """What tells it from every other trial of the dataset."""
        return self.root, self.trial_path

    @property
    def placebo(self) -> bool:
        """The arm asked for an empty bundle and got it: undelivered, as declared."""
        return as_declared(self.reasons)

    @property
    def looks(self) -> tuple[Use, ...]:
        """Look-ups and openings, in order."""
        return tuple(u for u in self.uses if u.kind in {"lookup", "open"})

    @property
    def found(self) -> bool | None:
        """The gold asset was among what came back or was opened; None where that cannot be told."""
        return any(u.gold_rank is not None and u.answered for u in self.looks) if self._gold_known else None

    @property
    def opened(self) -> bool | None:
        """The gold asset was opened; None where that cannot be told."""
        return self.opening is not None if self._gold_known else None

    @property
    def wrote(self) -> bool | None:
        """Something was written in a later step than the gold asset was opened in."""
        return bool(self.writes_after_opening) if self._gold_known else None

    @property
    def opening(self) -> Use | None:
        """The first opening of the gold asset that brought it."""
        return next((u for u in self.uses if u.kind == "open" and u.gold_rank is not None and u.answered), None)

    @property
    def writes_after_opening(self) -> tuple[Use, ...]:
        """Writes after the gold asset was opened; calls of one step were decided together."""
        opening = self.opening
        if opening is None:
            return ()
        later = [u for u in self.uses if u.kind == "write" and u.index > opening.index]
        return tuple(u for u in later if u.step is None or u.step != opening.step)

    @property
    def first_lookup(self) -> Use | None:
        """The first search, curate or listing; an asset that was opened straight away has no rank."""
        return next((u for u in self.uses if u.kind == "lookup"), None)

    @property
    def _gold_known(self) -> bool:
        """Whether there was a gold asset to look up, and it is known what was called."""
        return bool(self.gold) and self.called is not None and not self.given


def read_uses(dataset: Path, arms: Sequence[Arm], rule: Policy) -> tuple[TrialUse, ...]:
    """Read what every attempt of these arms did with the bundle, arm by arm, oldest attempt first.

    Args:
        dataset: a dataset's folder.
        arms: the arms.
        rule: the error policy that scores the attempts.
    """
    tasks = {t["task_name"]: t for t in read_table(dataset, TASKS).to_pylist()}
    given = _given(dataset, arms)
    touched = given | {key for arm in arms for key in keys_of(arm.attempts[arm.attempts["n_akm_calls"] > 0])}
    calls = rows_by_trial(dataset, TOOL_CALLS, touched, _CALLS)
    found = []
    for arm in arms:
        for row, score in zip(arm.attempts.to_dict("records"), scores(arm.attempts, rule), strict=True):
            key = (row["root"], row["trial_path"])
            seen = _Seen(arm.name, tasks.get(row["task_name"], {}), key in given, calls.get(key, []))
            found.append(_trial(row, score, seen))
    return tuple(found)


def keys_of(attempts: pd.DataFrame) -> list[Key]:
    """The keys of rows of the trials table."""
    return list(zip(attempts["root"], attempts["trial_path"], strict=True))


def rows_by_trial(
    dataset: Path, table: Table, keys: Iterable[Key], columns: Sequence[str] | None = None
) -> dict[Key, list[dict[str, Any]]]:
    """Rows of a detail table for these trials, in the table's own order."""
    wanted = set(keys)
    if not wanted:
        return {}
    whole = read_table(dataset, table, list(columns) if columns else None)
    mine = whole.filter(pc.is_in(whole["trial_path"], pa.array(sorted({path for _, path in wanted}), pa.string())))
    out: dict[Key, list[dict[str, Any]]] = {}
    for row in mine.to_pylist():
        key = (row["root"], row["trial_path"])
        if key in wanted:
            out.setdefault(key, []).append(row)
    return out


def _given(dataset: Path, arms: Sequence[Arm]) -> set[Key]:
    """Trials with a main request that carried the bundle's text."""
    contexts = [arm.attempts[arm.attempts["context"] == "bundle"] for arm in arms]
    keys = {key for frame in contexts for key in keys_of(frame)}
    rows = rows_by_trial(dataset, MODEL_REQUESTS, keys, ["root", "trial_path", "kind", "context_chars"])
    return {key for key, found in rows.items() if any(r["kind"] == "main" and r["context_chars"] for r in found)}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of an attempt besides its row of `trials`."""

    arm: str
    task: Mapping[str, Any]
    given: bool
    calls: list[dict[str, Any]]


def _trial(row: Mapping[Any, Any], score: float, seen: _Seen) -> TrialUse:
    task = seen.task
    withheld = _withheld(task.get("metadata_json"))
    injected = verdict_of(row["context_injected"])
    gold = tuple(bare_ref(ref.strip()) for ref in (task.get("gold_ref") or "").split(",") if ref.strip())
    ordered = sorted(seen.calls, key=lambda c: c["index"])
    return TrialUse(
        row["root"],
        row["trial_path"],
        str(row["trial_name"]),
        seen.arm,
        str(row["task"]),
        task.get("family"),
        None if score != score else float(score),  # noqa: PLR0124  (NaN differs from itself)
        verdict_of(row["treatment_delivered"]),
        reasons_of(row["delivery_reasons"]),
        verdict_of(row["tools_offered"]),
        True if seen.given else injected,
        seen.given,
        None if pd.isna(row["n_akm_calls"]) else bool(row["n_akm_calls"] > 0),
        gold,
        withheld,
        tuple(use for call in ordered if (use := use_of(call, withheld)) is not None),
    )


def _withheld(metadata: str | None) -> tuple[str, ...]:
    try:
        words = json.loads(metadata or "{}").get("withheld")
    except (ValueError, AttributeError):
        return ()
    return tuple(w for w in words if isinstance(w, str) and w) if isinstance(words, list) else ()


def use_of(call: Mapping[str, Any], withheld: Sequence[str] = ()) -> Use | None:
    """What one row of `tool_calls` was; None if it neither touched the bundle nor wrote."""
    arguments = _arguments(call["arguments_json"])
    text = call["arguments_json"] or ""
    tool, verb = str(call["tool"]), call["akm_verb"] or ""
    events = _events(call, arguments)
    ok = worked(call, events)
    refs = tuple(dict.fromkeys(bare_ref(ref) for ref in call["akm_refs"] or ()))
    kind: Kind
    if verb in {"search", "curate"} or (verb == READ and not any(ref in text for ref in refs)):
        kind, ok = "lookup", ok and bool(refs)
    elif verb in {"show", READ}:
        kind, ok = "open", ok and bool(call["output_chars"])
    elif verb:
        kind = "other"
    elif any(event.kind == "write" for event in events):
        kind, ok = "write", call["status"] != "error"
    else:
        return None
    written = "\n".join(v for v in arguments.values() if isinstance(v, str)) if kind == "write" else ""
    words = tuple(w for w in withheld if _holds(written, w))
    named = (arguments.get(name) for name in ("query", "ref", "command", "filePath", "path"))
    shown = call["akm_query"] or next((n for n in named if isinstance(n, str)), text)
    return Use(
        int(call["index"]),
        call["step_id"],
        call["call_id"],
        kind,
        tool,
        verb,
        shown[:_TEXT],
        refs,
        None if pd.isna(call["gold_rank"]) else int(call["gold_rank"]),
        ok,
        words,
    )


def worked(call: Mapping[str, Any], events: Sequence[Event] | None = None) -> bool:
    """Whether a call did what it was to do: opencode calls a tool "completed" also when akm refused."""
    told = _events(call, _arguments(call["arguments_json"])) if events is None else events
    return all(event.ok for event in told) and call["status"] != "error" and not call["error"]


def _events(call: Mapping[str, Any], arguments: dict[str, Any]) -> list[Event]:
    return events_of_call(Call(call["step_id"] or 0, 0, str(call["tool"]), arguments, call["output_head"]))


def _arguments(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {"command": text}  # cut when it was collected
    return found if isinstance(found, dict) else {}


def _holds(text: str, word: str) -> bool:
    """Whether a text holds a word that is no part of a longer one."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None
