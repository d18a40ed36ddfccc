"""The complete protocol of a number with a model in it: two numbers stand in one table only if it is equal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from akm_harbor.memory.label import METRICS_VERSION, RetrievalProtocol, differences, digest


@dataclass(frozen=True, slots=True)
class StudyProtocol:
    """What a number depends on beside its arm.

    Attributes:
        benchmark: which benchmark.
        dataset_sha256: which file of it.
        granularity: how documents are cut.
        corpus: whose turns are stored.
        topk: documents of a context as is.
        depth: documents a filled context may draw on; None: as is.
        order: how documents stand in the context.
        budget: tokens the context is filled to; None: as is.
        tokenizer: what counts them.
        sample: which questions.
        category_5: whether LoCoMo's adversarial questions are asked.
        seed: seed of names, order and sample.
        reader_model: reader asked for.
        reader_served: readers that answered, sorted.
        reader_prompt_sha256: the answer prompt.
        reader_settings: temperature, max_tokens and the like.
        scorer: which scorer.
        scorer_sha: digest of all that decides a score.
        judge_model: judge asked for; None: no judge.
        judge_served: judges that answered, sorted.
        judge_prompt_ids: judge prompts used, sorted.
        judge_settings: temperature, max_tokens and the like.
        metrics: version of our metrics.
    """

    benchmark: str
    dataset_sha256: str
    granularity: str
    corpus: str
    topk: int
    depth: int | None
    order: str
    budget: int | None
    tokenizer: str
    sample: str
    category_5: str
    seed: int
    reader_model: str
    reader_served: tuple[str, ...]
    reader_prompt_sha256: str
    reader_settings: dict[str, Any]
    scorer: str
    scorer_sha: str
    judge_model: str | None
    judge_served: tuple[str, ...]
    judge_prompt_ids: tuple[str, ...]
    judge_settings: dict[str, Any]
    metrics: int = METRICS_VERSION

    def as_dict(self) -> dict[str, Any]:
        """As the manifest holds it, with its id."""
        return labelled(asdict(self))


def labelled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Protocol fields with the id that stands for them."""
    bare = {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items() if name != "id"}
    return {"id": digest(bare)[:12], **bare}


def retrieval_fields(protocol: RetrievalProtocol) -> dict[str, Any]:
    """The part a study shares with a probe."""
    names = ("benchmark", "dataset_sha256", "granularity", "corpus", "topk", "tokenizer", "sample")
    return {name: getattr(protocol, name) for name in names}


def protocol_differences(protocols: Sequence[Mapping[str, Any]]) -> list[str]:
    """What differs between the first protocol and any other, one sentence each; empty: comparable."""
    found: list[str] = []
    for other in protocols[1:]:
        first, second = ({k: v for k, v in p.items() if k != "id"} for p in (protocols[0], other))
        found += [difference for difference in differences(first, second) if difference not in found]
    return found
