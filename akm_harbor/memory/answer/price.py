"""What a study will cost, before the first call."""

from collections.abc import Iterable
from dataclasses import dataclass

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer import endpoint as endpoints
from akm_harbor.memory.answer.caller import Endpoint
from akm_harbor.memory.answer.spec import Model, Price


class PriceUnknownError(AkmHarborError):
    """A model whose price nobody has said: a cap in USD could not be kept."""

    exit_code = 2


@dataclass(slots=True)
class Line:
    """One line of an estimate.

    Attributes:
        what: reader, judge or judge probe, with arm and budget.
        calls: calls that are not answered yet.
        known: calls that are.
        in_tok: prompt tokens of the former, estimated.
        out_tok: the most they may say.
        usd: the most they can cost; None: unknown.
    """

    what: str
    calls: int = 0
    known: int = 0
    in_tok: int = 0
    out_tok: int = 0
    usd: float | None = 0.0

    def add(self, endpoint: Endpoint, in_tok: int, out_tok: int) -> None:
        """Count one call."""
        self.calls += 1
        self.in_tok += in_tok
        self.out_tok += out_tok
        cost = endpoint.usd(in_tok, out_tok)
        self.usd = None if self.usd is None or cost is None else self.usd + cost


def endpoint_of(model: Model, *, need_price: bool) -> Endpoint:
    """A model of a study file as an endpoint with its price.

    Raises:
        PriceUnknownError: neither the study nor litellm's table knows the price, and the study does not say so.
    """
    price: tuple[float, float] | None
    if isinstance(model.price, Price):
        price = (model.price.input, model.price.output)
    elif model.price == "unknown":
        price = None
    else:
        price = endpoints.listed_price(model.model)
        if price is None and need_price:
            raise PriceUnknownError(
                f"the price of {model.model} is not known",
                hint="Say it (price: {input: USD, output: USD}, per million tokens), or `price: unknown` with a cap"
                " on calls.",
            )
    return Endpoint(
        model=model.model,
        api_base=model.api_base,
        api_key_env=model.api_key_env,
        serves=tuple(model.serves),
        price=price,
        attempts=model.attempts,
        timeout_s=model.timeout,
        first_wait_s=model.first_wait,
        requests_per_minute=model.requests_per_minute,
        tokens_per_minute=model.tokens_per_minute,
    )


def total(lines: Iterable[Line]) -> Line:
    """The sum of an estimate."""
    whole = Line("all")
    for line in lines:
        whole.calls += line.calls
        whole.known += line.known
        whole.in_tok += line.in_tok
        whole.out_tok += line.out_tok
        whole.usd = None if whole.usd is None or line.usd is None else whole.usd + line.usd
    return whole
