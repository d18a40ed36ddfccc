"""A model call, named by its content: the same words to the same model are one call, paid once."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

READER, JUDGE, PROBE = "reader", "judge", "probe"
ANSWERED, FAILED = "answered", "failed"

type Messages = Sequence[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    Attributes:
        role: `reader`, `judge` or `probe`: whose endpoint it goes to (a probe goes to the judge's).
        endpoint: the server's address, empty for the provider's own.
        model: as litellm names it.
        messages: the conversation.
        settings: temperature, max_tokens and the like, sorted.
        repeat: repeats of the same request are calls of their own.
        in_tokens: estimate of the prompt's tokens, for limits and the price.
    """

    role: str
    endpoint: str
    model: str
    messages: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, Any], ...]
    repeat: int = 0
    in_tokens: int = 0

    @property
    def key(self) -> str:
        """Digest of what the answer depends on; neither arm nor role: who shares words shares the answer."""
        parts = [self.endpoint, self.model, self.messages, self.settings, self.repeat]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()

    @property
    def max_tokens(self) -> int:
        """The most the model may say."""
        return int(dict(self.settings).get("max_tokens", 0))


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a request.

    Attributes:
        key: the request's.
        role: the request's.
        status: `answered` or `failed`.
        model_req: the model asked for.
        model_served: the model that answered.
        text: what it said.
        finish_reason: why it stopped.
        in_tok: prompt tokens as the server counted them; None: it did not say.
        out_tok: completion tokens.
        usd: price; None: unknown.
        attempts: requests sent.
        started_at: when the last was sent, ISO 8601.
        ended_at: when it ended.
        error_class: kind of failure.
        error: the failure in a sentence.
        taken_over: it was there before this run.
    """

    key: str
    role: str
    status: str
    model_req: str
    model_served: str | None = None
    text: str | None = None
    finish_reason: str | None = None
    in_tok: int | None = None
    out_tok: int | None = None
    usd: float | None = None
    attempts: int = 0
    started_at: str | None = None
    ended_at: str | None = None
    error_class: str | None = None
    error: str | None = None
    taken_over: bool = False

    @property
    def answered(self) -> bool:
        """The model answered."""
        return self.status == ANSWERED

    def to_json(self) -> dict[str, Any]:
        """As a line of the journal holds it."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "taken_over"}


def as_pairs(messages: Messages) -> tuple[tuple[str, str], ...]:
    """Messages as hashable (role, content) pairs."""
    return tuple((message["role"], message["content"]) for message in messages)


def as_messages(pairs: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Pairs as messages."""
    return [{"role": role, "content": content} for role, content in pairs]
