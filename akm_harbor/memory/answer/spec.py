"""study.yaml: what a study measures, with which reader, scorer and judge, for how much money at most."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta, Struct

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.answer.prompt import ANSWER_PROMPT, Prompt, load_prompt
from akm_harbor.memory.backends.registry import parse_arm
from akm_harbor.memory.context import TIME, Reading
from akm_harbor.memory.documents import ALL
from akm_harbor.memory.plan import Settings
from akm_harbor.yaml_text import compose, doubled

AS_IS = "as-is"
RETRIEVAL_GATE, CEILING_GATE = "retrieval-gate", "oracle-ceiling"
GATES = (RETRIEVAL_GATE, CEILING_GATE)

Positive = Annotated[int, Meta(ge=1)]
Money = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """USD per million tokens."""

    input: Money
    output: Money


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model and how it is called; field by field as in docs/memory-studies.md."""

    model: str
    api_base: str = ""
    api_key_env: str = ""
    serves: list[str] = []
    price: Price | Literal["unknown"] | None = None
    temperature: float | None = 0.0
    max_tokens: Positive | None = None
    extra: dict[str, Any] = {}
    seed: int | None = None
    context_window: Positive | None = None
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    attempts: Positive = 6
    timeout: Annotated[float, Meta(gt=0)] = 120.0
    first_wait: Annotated[float, Meta(ge=0)] = 1.0
    repeats: Positive = 1


class Reader(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that answers."""

    prompt: str = ""


class JudgeModel(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that judges; `probe` is how many questions get made-up answers."""

    probe: Annotated[int, Meta(ge=0)] = 20


class ScorerChoice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which scorer; `upstream` is a checkout at the pinned commit, where its prompts are needed."""

    name: Literal["locomo-f1", "longmemeval-judge", "beam-upstream", "beam-paper", "akm-harbor-judge"]
    upstream: str = ""


class Spending(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The hard cap."""

    max_usd: Money | None = None
    max_calls: Positive | None = None


class Gates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold before money is spent."""

    retrieval: Share = 0.05
    ceiling: Share = 0.3
    ceiling_result: str = ""


class Study(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole study file."""

    version: Literal[1]
    name: str
    arms: Annotated[list[str], Meta(min_length=1)]
    reader: Reader
    scorer: ScorerChoice
    dataset: str = ""
    data: str = ""
    judge: JudgeModel | None = None
    granularity: str = "session"
    corpus: str = ALL
    topk: Positive = 5
    order: str = TIME
    budgets: list[Literal["as-is"] | int] = msgspec.field(default_factory=lambda: ["as-is"])
    depth: Positive = 100
    sample: Positive | None = None
    histories: Positive | None = None
    seed: int = 0
    category_5: Literal["include", "exclude"] = "include"
    concurrency: Annotated[int, Meta(ge=1, le=256)] = 8
    spending: Spending = Spending()
    gates: Gates = Gates()

    @property
    def reading(self) -> Reading:
        """The contexts asked for."""
        return Reading(tuple(None if b == AS_IS else int(b) for b in self.budgets), self.order, self.depth)

    def settings(self, jobs: int, scheduler: str | None, akm: Path | None) -> Settings:
        """The retrieval part, as a probe has it."""
        return Settings(
            arms=tuple(parse_arm(with_akm(arm, akm)) for arm in self.arms),
            granularities=(self.granularity,),
            topk=self.topk,
            corpus=self.corpus,
            seed=self.seed,
            sample=self.sample,
            instances=self.histories,
            jobs=jobs,
            scheduler=scheduler,
        )


def with_akm(text: str, akm: Path | None) -> str:
    """An arm with the akm executable it is to use, where it is an akm arm that names none."""
    if akm is None or not (text == "akm" or text.startswith("akm:")) or "path=" in text:
        return text
    return f"{text}{',' if ':' in text else ':'}path={akm}"


def budget_name(budget: int | None) -> str:
    """A budget as study files and manifests spell it."""
    return AS_IS if budget is None else str(budget)


def load_study(path: Path) -> Study:
    """Read a study file and check all of it that can be checked without its data.

    Raises:
        AkmHarborError: it cannot be read.
        UsageError: what it says cannot be meant; the message names the key.
    """
    try:
        root, data = compose(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AkmHarborError(
            f"cannot be read ({error.strerror})", path=path, hint="Check that the file is there and may be read."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise AkmHarborError(f"is not YAML ({' '.join(str(error).split())})", path=path) from error
    twice = doubled(root)
    if twice is not None:
        raise UsageError(f"line {twice[1]}: `{twice[0]}` is given twice", path=path)
    try:
        study = msgspec.convert(data, Study)
    except msgspec.ValidationError as error:
        raise UsageError(str(error), path=path, hint="The keys are explained in docs/memory-studies.md.") from None
    try:
        _check(study)
    except UsageError as error:
        raise UsageError(error.message, path=path, hint=error.hint) from None
    return _resolved(study, path.parent)


def _check(study: Study) -> None:
    if not study.dataset and not study.data:
        raise UsageError("names no data", hint="Give dataset: NAME (akm-harbor memory datasets) or data: PATH.")
    study.settings(1, None, None)
    _ = study.reading
    if study.scorer.name == "locomo-f1":
        if study.judge is not None:
            raise UsageError("locomo-f1 needs no judge", hint="Leave `judge` out, or choose akm-harbor-judge.")
    elif study.judge is None:
        raise UsageError(f"{study.scorer.name} needs a judge", hint="Give judge: {model: ...}.")
    needs_upstream = study.scorer.name not in ("locomo-f1", "akm-harbor-judge")
    if needs_upstream and not study.scorer.upstream:
        raise UsageError(
            f"{study.scorer.name} needs upstream's judge prompts, which do not ship",
            hint="Name a checkout at the pinned commit in scorer.upstream.",
        )
    for role, model in (("reader", study.reader), ("judge", study.judge)):
        if model is not None and model.price == "unknown" and study.spending.max_calls is None:
            raise UsageError(
                f"the {role}'s price is unknown, so a cap in USD holds nothing back",
                hint="Cap the number of requests: spending: {max_calls: N}.",
            )


def _resolved(study: Study, folder: Path) -> Study:
    """The same with its paths relative to the file it stands in."""

    def place(text: str) -> str:
        return str((folder / text).resolve()) if text else ""

    return msgspec.structs.replace(
        study,
        data=place(study.data),
        reader=msgspec.structs.replace(study.reader, prompt=place(study.reader.prompt)),
        scorer=msgspec.structs.replace(study.scorer, upstream=place(study.scorer.upstream)),
        gates=msgspec.structs.replace(study.gates, ceiling_result=place(study.gates.ceiling_result)),
    )


def answer_prompt(study: Study) -> Prompt:
    """The one answer prompt of a study."""
    return load_prompt(Path(study.reader.prompt)) if study.reader.prompt else ANSWER_PROMPT
