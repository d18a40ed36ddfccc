"""The order of a study: retrieval must find something, and the evidence must be answerable, before money is spent.

A gate that stays shut stops the study. It can be waived by name, which is said aloud and recorded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer.spec import CEILING_GATE, RETRIEVAL_GATE
from akm_harbor.memory.unit import OK

_REFERENCES = ("none", "full", "oracle")
_ORACLE_EVIDENCE = 0.95


class GateError(AkmHarborError):
    """A gate is shut, and nobody waived it."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class Gate:
    """What a gate found.

    Attributes:
        name: which gate.
        passed: it is open.
        detail: what was found, in words.
        waived: it is shut and was waived.
    """

    name: str
    passed: bool
    detail: str
    waived: bool = False


def retrieval_gate(rows: Iterable[Mapping[str, Any]], least: float) -> Gate:
    """Whether every arm finds enough evidence to be worth reading.

    Args:
        rows: one a question, arm and budget: arm, backend, status, gold_status, evidence_in_ctx.
        least: mean share of the evidence that must stand in the context of each arm that searches.
    """
    found: dict[str, list[float]] = {}
    backends: dict[str, str] = {}
    failed: dict[str, int] = {}
    for row in rows:
        backends[row["arm"]] = row["backend"]
        if row["status"] != OK:
            failed[row["arm"]] = failed.get(row["arm"], 0) + 1
        elif row["gold_status"] == OK and row["evidence_in_ctx"] is not None:
            found.setdefault(row["arm"], []).append(float(row["evidence_in_ctx"]))
    means = {arm: sum(values) / len(values) for arm, values in found.items() if values}
    wrong = [f"{arm}: {n} queries failed" for arm, n in failed.items()]
    for arm, backend in backends.items():
        mean = means.get(arm)
        if backend == "oracle" and mean is not None and mean < _ORACLE_EVIDENCE:
            wrong.append(f"{arm}: {mean:.1%} of the evidence is in its own contexts, {_ORACLE_EVIDENCE:.0%} is needed")
        elif backend not in _REFERENCES and mean is not None and mean < least:
            wrong.append(f"{arm}: finds {mean:.1%} of the evidence, {least:.1%} is needed")
    if wrong:
        return Gate(RETRIEVAL_GATE, passed=False, detail="; ".join(wrong))
    shares = ", ".join(f"{arm} {mean:.1%}" for arm, mean in means.items())
    return Gate(RETRIEVAL_GATE, passed=True, detail=f"evidence in context: {shares or 'no question has evidence'}")


def ceiling_gate(scores: Sequence[float], asked: int, least: float, *, where: str) -> Gate:
    """Whether the reader answers when it is given exactly the evidence.

    Args:
        scores: scores of the oracle's answers.
        asked: questions put to it.
        least: mean that must be reached.
        where: what was measured, in words.
    """
    if not scores:
        return Gate(CEILING_GATE, passed=False, detail=f"{where}: none of {asked} answers has a score")
    mean = sum(scores) / len(scores)
    detail = f"{where}: {mean:.3f} over {len(scores)} of {asked} answers, {least:.3f} is needed"
    return Gate(CEILING_GATE, passed=mean >= least, detail=detail)


def ceiling_from(path: Path, least: float, wanted: Mapping[str, Any]) -> Gate:
    """The ceiling of an earlier study of the same reader, prompt, scorer and judge.

    Args:
        path: its result.
        least: mean that must be reached.
        wanted: protocol fields that must be equal.

    Raises:
        AkmHarborError: it is no study.
    """
    from akm_harbor.memory.answer.result import read_study

    result = read_study(path)
    fields = ("benchmark", "reader_model", "reader_prompt_sha256", "reader_settings", "scorer_sha", "judge_model")
    for protocol in result.manifest["protocols"].values():
        other = [name for name in fields if protocol.get(name) != wanted.get(name)]
        if other:
            detail = f"{path.name} was measured under another {', '.join(other)}"
            return Gate(CEILING_GATE, passed=False, detail=detail)
    trials = result.trials
    arm = "full" if str(result.manifest["dataset"]["variant"]).startswith("oracle") else "oracle"
    rows = trials[trials["backend"].isin({arm, "oracle"})]
    scores = rows["score_official"].dropna().astype(float).tolist()
    return ceiling_gate(scores, len(rows), least, where=f"{arm} of {path.name}")


def unknown_ceiling() -> Gate:
    """No oracle arm, and no earlier result."""
    detail = "nobody knows what this reader answers with the evidence before it: add the arm `oracle`, or name an "
    return Gate(CEILING_GATE, passed=False, detail=detail + "earlier result in gates.ceiling_result")


def decide(gate: Gate, waived: Iterable[str]) -> Gate:
    """The gate, waived if it is shut and was named.

    Raises:
        GateError: it is shut.
    """
    if gate.passed:
        return gate
    if gate.name in set(waived):
        return Gate(gate.name, passed=False, detail=gate.detail, waived=True)
    raise GateError(
        f"the {gate.name} is shut: {gate.detail}",
        hint=f"Mend it, change gates: in the study, or go on all the same with --waive {gate.name} (recorded).",
    )
