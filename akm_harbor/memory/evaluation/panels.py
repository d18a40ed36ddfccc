"""Which numbers may stand side by side: a panel holds what was measured under one protocol.

Inside a panel only the arm and the declared token budget differ. Everything else, down to the
digest of the answer prompt, must be equal; where it is not, the page says what differs.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from akm_harbor.memory.answer.protocol_label import protocol_differences
from akm_harbor.memory.answer.result import StudyResult

AS_IS = "as-is"
_FREE = ("id", "budget", "depth")
_LONG_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")


@dataclass(frozen=True, slots=True)
class Panel:
    """Studies that may be compared.

    Attributes:
        number: counted from 1.
        protocol: what all of them share.
        studies: their names.
        rows: their `memory_trials`; where two studies have an arm of one name, the arm bears its study's name.
        manifests: of the studies.
    """

    number: int
    protocol: Mapping[str, Any]
    studies: tuple[str, ...]
    rows: pd.DataFrame
    manifests: tuple[Mapping[str, Any], ...]

    @property
    def title(self) -> str:
        """Benchmark, scorer and judge in a few words."""
        judge = self.protocol.get("judge_model")
        how = f"{self.protocol.get('scorer')}, judge {judge}" if judge else str(self.protocol.get("scorer"))
        return f"{self.protocol.get('benchmark')}, {how}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why two panels are kept apart.

    Attributes:
        first: number of a panel.
        second: of another.
        reasons: what differs, one sentence each.
    """

    first: int
    second: int
    reasons: tuple[str, ...]


def panels(studies: Sequence[StudyResult]) -> tuple[list[Panel], list[Refusal]]:
    """Group studies by protocol, in the order given, and say why groups are kept apart."""
    groups: list[tuple[dict[str, Any], list[StudyResult]]] = []
    for study in studies:
        shared = shared_protocol(study.manifest)
        home = next((group for group in groups if _fits(shared, group[0])), None)
        if home is None:
            groups.append((shared, [study]))
        else:
            home[0]["depth"] = home[0]["depth"] or shared["depth"]
            home[1].append(study)
    found = [
        Panel(
            number,
            shared,
            tuple(_name(study) for study in members),
            _rows(members),
            tuple(study.manifest for study in members),
        )
        for number, (shared, members) in enumerate(groups, start=1)
    ]
    refusals = [
        Refusal(a.number, b.number, _reasons(a.protocol, b.protocol))
        for i, a in enumerate(found)
        for b in found[i + 1 :]
    ]
    return found, refusals


def shared_protocol(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A study's protocol without its budgets; fields that its own budgets disagree on become a list.

    `depth` limits filled contexts only, so it is theirs, or None where all are as they come.
    """
    listed = list(manifest.get("protocols", {}).values())
    names = dict.fromkeys(name for protocol in listed for name in protocol if name not in _FREE)
    shared: dict[str, Any] = {}
    for name in names:
        values = [protocol.get(name) for protocol in listed]
        shared[name] = values[0] if all(value == values[0] for value in values) else values
    shared["depth"] = next((protocol["depth"] for protocol in listed if protocol.get("depth") is not None), None)
    return shared


def _fits(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Equal but for a depth that only one of them uses."""
    rest = [{name: value for name, value in protocol.items() if name != "depth"} for protocol in (a, b)]
    return rest[0] == rest[1] and (a["depth"] is None or b["depth"] is None or a["depth"] == b["depth"])


def _reasons(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
    """What differs, with long digests cut."""
    depths = {a["depth"], b["depth"]}
    both = [{**protocol, "depth": 0} if None in depths else protocol for protocol in (a, b)]
    return tuple(_LONG_DIGEST.sub(r"\1", reason) for reason in protocol_differences(both))


def _name(study: StudyResult) -> str:
    return str(study.manifest.get("name") or study.path.name)


def _rows(studies: Sequence[StudyResult]) -> pd.DataFrame:
    seen: set[str] = set()
    parts = []
    for study in studies:
        rows = study.trials.assign(study=_name(study))
        arms = set(rows["arm"])
        clash = arms & seen
        if clash:
            renamed = {arm: f"{arm} ({_name(study)})" for arm in clash}
            rows["arm"] = rows["arm"].replace(renamed)
        seen |= arms
        parts.append(rows)
    return pd.concat(parts, ignore_index=True)
