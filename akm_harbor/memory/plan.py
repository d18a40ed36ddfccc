"""All units of a probe or a study, in an order that does not depend on where they run."""

import dataclasses
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.errors import UsageError
from akm_harbor.memory import schedule, tokens
from akm_harbor.memory.backends.registry import Arm, make_backend
from akm_harbor.memory.checkpoint import Checkpoint
from akm_harbor.memory.context import Reading
from akm_harbor.memory.datasets.model import Question
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.documents import ALL, check_corpus, check_granularity
from akm_harbor.memory.label import RetrievalProtocol
from akm_harbor.memory.protocol import Description
from akm_harbor.memory.unit import OK, Source, Unit, UnitResult


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure, and how.

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
class Done:
    """One finished unit.

    Attributes:
        number: its place in the plan.
        key: its name in the checkpoint.
        result: what it yielded.
        fresh: it was run now, not taken over.
    """

    number: int
    key: str
    result: UnitResult
    fresh: bool


class Plan:
    """What is run, and what it is called.

    Attributes:
        source: the dataset, as every row names it.
        described: what each arm's backend says of itself.
        protocols: granularity -> protocol.
        total: number of units.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        reading: Reading | None = None,
        keep: Callable[[Question], bool] = lambda _question: True,
    ) -> None:
        """Lay out the units.

        Args:
            store: the converted benchmark.
            settings: how.
            reading: the contexts the units hand on; None: none.
            keep: which questions are asked at all; the sample is drawn from these.

        Raises:
            AkmHarborError: an arm does not work at all.
        """
        check_corpus(store.benchmark, settings.corpus)
        self.store = store
        self.settings = settings
        self.reading = reading
        self.described = {arm: _describe(arm) for arm in settings.arms}
        self._kept, sample = _sample(store, settings, keep)
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

    @property
    def dataset(self) -> dict[str, Any]:
        """The dataset, as a manifest names it."""
        names = ("benchmark", "variant", "source", "sha256", "revision", "instances", "questions", "audit_source")
        return {name: self.store.manifest.get(name) for name in names}

    def units(self) -> Iterator[tuple[int, Unit]]:
        """(number, unit), one history in memory at a time."""
        number = 0
        settings = self.settings
        for instance in self.store.read([info.number for info in self.histories]):
            questions = tuple(q for q in instance.questions if q.question_id in self._kept)
            kept = dataclasses.replace(instance, questions=questions)
            for granularity in settings.granularities:
                for arm in settings.arms:
                    for repeat in range(settings.repeats):
                        yield (
                            number,
                            Unit(
                                kept,
                                self.source,
                                arm,
                                self.described[arm],
                                self.protocols[granularity],
                                settings.seed + repeat,
                                repeat,
                                self.reading,
                            ),
                        )
                        number += 1

    def results(self, checkpoint: Checkpoint) -> Iterator[Done]:
        """Run what is not finished yet; what is comes from the checkpoint, as it is met."""
        found: list[Done] = []
        keys: dict[int, str] = {}

        def left() -> Iterator[tuple[int, Unit]]:
            for number, unit in self.units():
                key = unit.key()
                stored = checkpoint.load(key)
                if stored is not None:
                    found.append(Done(number, key, stored, fresh=False))
                elif unit.instance.questions:
                    keys[number] = key
                    yield number, unit

        for number, result in self._run(left()):
            key = keys.pop(number)
            if set(result.trials["status"].to_pylist()) == {OK}:  # what failed is tried again, not taken over
                checkpoint.save(key, result)
            yield Done(number, key, result, fresh=True)
            while found:
                yield found.pop()
        while found:
            yield found.pop()

    def _run(self, units: Iterator[tuple[int, Unit]]) -> Iterator[tuple[int, UnitResult]]:
        if self.settings.scheduler is not None:
            return schedule.run_dask(units, self.settings.scheduler)
        if self.settings.jobs > 1:
            return schedule.run_processes(units, self.settings.jobs)
        return schedule.run_here(units)


def _describe(arm: Arm) -> Description:
    """Build each backend once before any work: one that cannot work stops everything at once."""
    with tempfile.TemporaryDirectory(prefix="akm-harbor-memory-") as work:
        return make_backend(arm, Path(work)).describe()


def _sample(store: Store, settings: Settings, keep: Callable[[Question], bool]) -> tuple[frozenset[str], str]:
    """The questions to ask, and how they were chosen, in words."""
    infos = store.instances()[: settings.instances]
    asked = store.questions({info.number for info in infos})
    kept = sorted(question.question_id for question in asked if keep(question))
    of = "" if settings.instances is None else f"first {len({info.instance_id for info in infos})} histories"
    if settings.sample is None:
        return frozenset(kept), of or "all"
    n = min(settings.sample, len(kept))
    drawn = frozenset(random.Random(settings.seed).sample(kept, n))  # noqa: S311
    return drawn, f"{n} of {len(kept)}{' of the ' + of if of else ''}, seed {settings.seed}"
