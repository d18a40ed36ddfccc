"""The set in use and the last window, as plain values and as text."""

from dataclasses import dataclass

from akm_harbor.canary.analysis import CanaryResult, StoreResult
from akm_harbor.canary.refs import reduced
from akm_harbor.report.text import short, visible


@dataclass(frozen=True, slots=True)
class ListedCanary:
    """One canary and where it came up in the newest cycle (0-based; -1 a miss; None not recorded)."""

    id: int
    anchor_ref: str
    query: str
    rank: int | None


@dataclass(frozen=True, slots=True)
class ListedCycle:
    """One cycle of the last window, with the alerts of the chosen rule."""

    ts: str
    run_id: str
    found: int | None
    asked: int | None
    mean_recall: float | None
    mean_ndcg: float | None
    mean_mrr: float | None
    distinct_content_ratio: float | None
    store_total: int | None
    over_generation_count: int | None
    accepted: int | None
    alerts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedStore:
    """One store: status, set in use, last window."""

    store: str
    status: str
    confidence: str
    message: str
    canary_set_id: str
    canaries: tuple[ListedCanary, ...]
    cycles: tuple[ListedCycle, ...]


def listing(result: CanaryResult) -> tuple[ListedStore, ...]:
    """What `canary show` prints."""
    return tuple(_store(store, result) for store in result.stores)


def _store(store: StoreResult, result: CanaryResult) -> ListedStore:
    newest = store.cycles[-1]
    asked = sorted((q for q in store.queries if q["canary_set_id"] == store.active_set), key=lambda q: q["id"])
    positions = [i for i, row in enumerate(store.rows) if row["canary_set_id"] == store.active_set]
    cycles = []
    for position in positions[-result.settings.window - 1 :]:
        row = store.rows[position]
        cycles.append(
            ListedCycle(
                ts=row["ts"].isoformat(timespec="seconds"),
                run_id=row["run_id"],
                found=row["n_hits"],
                asked=row["n_canaries"],
                mean_recall=row["mean_recall"],
                mean_ndcg=row["mean_ndcg"],
                mean_mrr=row["mean_mrr"],
                distinct_content_ratio=row["distinct_content_ratio"],
                store_total=row["store_total"],
                over_generation_count=row["over_generation_count"],
                accepted=row["accepted_measured"],
                alerts=tuple(alert.kind.value for alert in store.judged[result.rule].alerts[position]),
            )
        )
    return ListedStore(
        store=store.label,
        status=store.status,
        confidence=store.confidence,
        message=store.message,
        canary_set_id=store.active_set,
        canaries=tuple(
            ListedCanary(q["id"], reduced(q["anchor_ref"] or ""), q["query"] or "", newest.ranks.get(q["id"]))
            for q in asked
        ),
        cycles=tuple(cycles),
    )


def as_text(stores: tuple[ListedStore, ...]) -> str:
    """The listing for a terminal; text from a store is made harmless."""
    lines: list[str] = []
    for store in stores:
        lines += [
            f"{visible(store.store)}: {store.status} (confidence {store.confidence})",
            f"  {visible(store.message)}",
            f"  set {visible(store.canary_set_id)}, {len(store.canaries)} canaries",
            "",
            "  cycle                found   recall  nDCG   MRR    distinct  assets  deep  accepted  alerts",
        ]
        for cycle in store.cycles:
            numbers = (_number(cycle.mean_recall), _number(cycle.mean_ndcg), _number(cycle.mean_mrr))
            lines.append(
                f"  {cycle.ts[:19]:<19}  {_pair(cycle.found, cycle.asked):<6}  {'  '.join(numbers)}  "
                f"{_number(cycle.distinct_content_ratio):<8}  {_plain(cycle.store_total):>6}  "
                f"{_plain(cycle.over_generation_count):>4}  {_plain(cycle.accepted):>8}  {', '.join(cycle.alerts)}"
            )
        lines.append("")
        for canary in store.canaries:
            rank = "?" if canary.rank is None else "-" if canary.rank < 0 else str(canary.rank + 1)
            lines.append(f"  {rank:>3}  {short(canary.anchor_ref, 44):<44}  {short(canary.query, 60)}")
        lines.append("")
    return "\n".join(lines).rstrip()


def alert_text(store: StoreResult, most: int = 8) -> str:
    """The newest cycle's alerts: the anchors behind each, what is in their place, where to look next."""
    lines = []
    for finding in store.findings:
        if finding.position != len(store.rows) - 1:
            break
        lines.append(f"  {finding.alert.kind.value}: {finding.next}")
        for lost in finding.lost[:most]:
            instead = f"; in its place {short(lost.replaced_by, 60)}" if lost.replaced_by else ""
            lines.append(f"    {short(lost.anchor_ref, 60)}: {visible(lost.why)}{instead}")
        if len(finding.lost) > most:
            lines.append(f"    and {len(finding.lost) - most} more")
    return "".join(f"{line}\n" for line in lines)


def _number(value: float | None) -> str:
    return "-    " if value is None else f"{value:.3f}"


def _plain(value: int | None) -> str:
    return "-" if value is None else str(value)


def _pair(found: int | None, asked: int | None) -> str:
    return "-" if found is None or asked is None else f"{found}/{asked}"
