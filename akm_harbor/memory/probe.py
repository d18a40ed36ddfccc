"""Measure retrieval, with no model: any converted benchmark, any arms, in Parquet with a manifest."""

import dataclasses
import platform
import random
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import akm_harbor
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory import schedule, tokens
from akm_harbor.memory.backends.registry import Arm, make_backend
from akm_harbor.memory.checkpoint import Checkpoint
from akm_harbor.memory.columns import RETRIEVAL, TRIALS
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.documents import ALL, check_corpus, check_granularity
from akm_harbor.memory.label import RetrievalProtocol
from akm_harbor.memory.protocol import Description
from akm_harbor.memory.unit import OK, Source, Unit, UnitResult
from akm_harbor.tables import PROBLEMS, Problems, replace_dataset

KIND = "memory-probe"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to probe.

    Attributes:
        arms: what to measure.
        granularities: each is a measurement of its own.
        ks: cut-offs of the metrics.
        topk: hits that make the context.
        corpus: whose turns are stored.
        budget: token limit of the context.
        repeats: each with its own names and document order: the identity-permutation check.
        seed: seed of names, order and sample.
        sample: how many questions; None: all.
        instances: how many histories, from the first; None: all.
        jobs: worker processes.
        scheduler: a Dask scheduler instead of processes.
    """

    arms: tuple[Arm, ...]
    granularities: tuple[str, ...] = ("session",)
    ks: tuple[int, ...] = (1, 3, 5, 10, 20)
    topk: int = 5
    corpus: str = ALL
    budget: int | None = None
    repeats: int = 1
    seed: int = 0
    sample: int | None = None
    instances: int | None = None
    jobs: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            UsageError: with what to say instead.
        """
        if not self.arms:
            raise UsageError("no backend to probe", hint="Name at least one with --backend.")
        labels = [arm.label for arm in self.arms]
        if len(set(labels)) < len(labels):
            raise UsageError("the same arm is named twice", hint="Arms need different settings.")
        for name in ("topk", "repeats", "jobs"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not self.ks or min(self.ks) < 1:
            raise UsageError("the cut-offs must be positive", hint="For example --ks 1,5,10.")
        if self.sample is not None and self.sample < 1:
            raise UsageError("a sample needs at least one question")
        if self.budget is not None and self.budget < 1:
            raise UsageError("a token budget must be positive")
        for granularity in self.granularities:
            check_granularity(granularity)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What a probe did.

    Attributes:
        path: the dataset written.
        questions: questions asked, summed over arms, granularities and repeats.
        failed: rows whose status is not ok.
        resumed: units taken over from an earlier, stopped run.
        problems: what did not fit.
    """

    path: Path
    questions: int
    failed: int
    resumed: int
    problems: Problems


def probe(
    store: Store, settings: Settings, out: Path, progress: Callable[[int, int], None] | None = None
) -> ProbeReport:
    """Probe a converted benchmark and write `memory_trials`, `memory_retrieval`, problems and a manifest.

    Args:
        store: the converted benchmark.
        settings: how.
        out: the dataset to write.
        progress: called with units done and in all.

    Raises:
        AkmHarborError: an arm does not work at all, or the output cannot be written; units that
            were finished are kept beside it and taken over by the next run.
    """
    check_corpus(store.benchmark, settings.corpus)
    described = {arm: _describe(arm) for arm in settings.arms}
    sampled, sample = _sample(store, settings)
    plan = _Plan(store, settings, described, sampled, sample)
    checkpoint = Checkpoint(out)
    results: dict[int, UnitResult] = {}
    resumed = 0
    try:
        for number, result, fresh in plan.results(checkpoint):
            results[number] = result
            resumed += not fresh
            if progress is not None:
                progress(len(results), plan.total)
    except OSError as error:
        raise AkmHarborError(
            f"cannot go on ({error.strerror or error})",
            path=checkpoint.folder,
            hint="Units that were finished are kept there: make room and run the same command again.",
        ) from error
    report = _write(plan, results, out)
    checkpoint.clear()
    return dataclasses.replace(report, resumed=resumed)


class _Plan:
    """All units of a probe, in an order that does not depend on where they run."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        described: dict[Arm, Description],
        sampled: frozenset[str] | None,
        sample: str,
    ) -> None:
        self.store = store
        self.settings = settings
        self.described = described
        self.sampled = sampled
        manifest = store.manifest
        self.source = Source(store.benchmark, manifest["variant"], manifest["sha256"], manifest.get("revision"))
        self.protocols = {
            granularity: RetrievalProtocol(
                benchmark=store.benchmark,
                dataset_sha256=self.source.sha256,
                granularity=granularity,
                corpus=settings.corpus,
                topk=settings.topk,
                ks=tuple(sorted(set(settings.ks))),
                budget=settings.budget,
                tokenizer=tokens.counter()[0],
                sample=sample,
            )
            for granularity in settings.granularities
        }
        self.histories = store.instances()[: settings.instances]
        self.total = len(self.histories) * len(settings.granularities) * len(settings.arms) * settings.repeats

    def units(self) -> Iterator[tuple[int, Unit]]:
        number = 0
        for instance in self.store.read([info.number for info in self.histories]):
            kept = instance
            if self.sampled is not None:
                questions = tuple(q for q in instance.questions if q.question_id in self.sampled)
                kept = dataclasses.replace(instance, questions=questions)
            for granularity in self.settings.granularities:
                for arm in self.settings.arms:
                    for repeat in range(self.settings.repeats):
                        seed = self.settings.seed + repeat
                        yield (
                            number,
                            Unit(
                                kept, self.source, arm, self.described[arm], self.protocols[granularity], seed, repeat
                            ),
                        )
                        number += 1

    def results(self, checkpoint: Checkpoint) -> Iterator[tuple[int, UnitResult, bool]]:
        """(number, result, freshly run), finished units first as they are met."""
        found: list[tuple[int, UnitResult]] = []
        keys: dict[int, str] = {}

        def left() -> Iterator[tuple[int, Unit]]:
            for number, unit in self.units():
                key = unit.key()
                stored = checkpoint.load(key)
                if stored is not None:
                    found.append((number, stored))
                elif unit.instance.questions:
                    keys[number] = key
                    yield number, unit

        for number, result in self._run(left()):
            key = keys.pop(number)
            if set(result.trials["status"].to_pylist()) == {OK}:  # what failed is tried again, not taken over
                checkpoint.save(key, result)
            yield number, result, True
            while found:
                yield (*found.pop(), False)
        while found:
            yield (*found.pop(), False)

    def _run(self, units: Iterator[tuple[int, Unit]]) -> Iterator[tuple[int, UnitResult]]:
        if self.settings.scheduler is not None:
            return schedule.run_dask(units, self.settings.scheduler)
        if self.settings.jobs > 1:
            return schedule.run_processes(units, self.settings.jobs)
        return schedule.run_here(units)


def _describe(arm: Arm) -> Description:
    """Build each backend once before any work: one that cannot work stops the probe at once."""
    with tempfile.TemporaryDirectory(prefix="akm-harbor-memory-") as work:
        return make_backend(arm, Path(work)).describe()


def _sample(store: Store, settings: Settings) -> tuple[frozenset[str] | None, str]:
    histories = {info.instance_id for info in store.instances()[: settings.instances]}
    if settings.sample is None:
        return None, "all" if settings.instances is None else f"first {len(histories)} histories"
    kept = {info.number for info in store.instances()[: settings.instances]}
    ids = sorted(q.question_id for instance in store.read(sorted(kept)) for q in instance.questions)
    n = min(settings.sample, len(ids))
    drawn = frozenset(random.Random(settings.seed).sample(ids, n))  # noqa: S311
    of = "" if settings.instances is None else f" of the first {len(histories)} histories"
    return drawn, f"{n} of {len(ids)}{of}, seed {settings.seed}"


def _write(plan: _Plan, results: dict[int, UnitResult], out: Path) -> ProbeReport:
    run_id = secrets.token_hex(6)
    problems = Problems()
    statuses: Counter[str] = Counter()
    everything_in: Counter[str] = Counter()
    ordered = [results[number] for number in sorted(results)]
    with replace_dataset(out) as writer:
        for table, parts in ((TRIALS, [r.trials for r in ordered]), (RETRIEVAL, [r.retrieval for r in ordered])):
            whole = pa.concat_tables(parts) if parts else table.from_rows([])
            place = whole.schema.get_field_index("run_id")
            whole = whole.set_column(place, whole.schema.field(place), pa.array([run_id] * len(whole), pa.string()))
            writer.write(table, whole)
        for result in ordered:
            statuses.update(result.trials["status"].to_pylist())
            for arm, full in zip(
                result.trials["arm"].to_pylist(), result.trials["k_ge_corpus"].to_pylist(), strict=True
            ):
                everything_in[arm] += bool(full)
            for kind, detail, action in result.problems:
                problems.add(plan.store.path.name, kind, detail, action)
        saturated = max(everything_in.values(), default=0)
        if saturated:
            problems.add(
                plan.store.path.name,
                "k-not-below-corpus",
                f"{saturated} questions an arm: topk {plan.settings.topk} reaches every document",
                "kept and marked k_ge_corpus; recall there says nothing",
            )
        writer.write(PROBLEMS, problems.table())
        writer.write_manifest(_manifest(plan, run_id, statuses, len(problems)))
    total = statuses.total()
    return ProbeReport(out, total, total - statuses[OK], 0, problems)


def _manifest(plan: _Plan, run_id: str, statuses: Counter[str], problems: int) -> dict[str, Any]:
    settings = dataclasses.asdict(plan.settings)
    arms = {arm.label: dataclasses.asdict(described) for arm, described in plan.described.items()}
    for name in ("arms", "jobs", "scheduler"):
        del settings[name]
    return {
        "kind": KIND,
        "run_id": run_id,
        "package": akm_harbor.__version__,
        "python": platform.python_version(),
        "dataset": {
            key: plan.store.manifest.get(key)
            for key in (
                "benchmark",
                "variant",
                "source",
                "sha256",
                "revision",
                "instances",
                "questions",
                "audit_source",
            )
        },
        "arms": arms,
        "settings": settings,
        "protocols": {
            granularity: {"id": protocol.id, **dataclasses.asdict(protocol)}
            for granularity, protocol in plan.protocols.items()
        },
        "statuses": dict(sorted(statuses.items())),
        "problems": problems,
    }
