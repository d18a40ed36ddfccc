"""One attempt at one model call, through litellm, with every failure given a name."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer import failures
from akm_harbor.memory.answer.failures import CallError
from akm_harbor.tables.redact import redact_text

_ERROR_CHARS = 300


@cache
def _litellm() -> ModuleType:
    """litellm, told to fetch nothing of its own and to keep its advice to itself."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm
    except ImportError as error:
        raise AkmHarborError("model calls need litellm", hint="pip install litellm") from error
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    return litellm


def warm_up() -> None:
    """Import litellm now: it takes seconds, and the first call should not pay for them."""
    _litellm()


def listed_price(model: str) -> tuple[float, float] | None:
    """(input, output) price in USD per million tokens by litellm's shipped table; None: it does not know the model."""
    try:
        info = _litellm().get_model_info(model)
    except Exception:  # noqa: BLE001  (litellm raises one of several classes for an unknown model)
        return None
    prices = (info.get("input_cost_per_token"), info.get("output_cost_per_token"))
    if prices[0] is None or prices[1] is None:
        return None
    return float(prices[0]) * 1e6, float(prices[1]) * 1e6


def listed_window(model: str) -> int | None:
    """The most prompt tokens a model takes, by the same table."""
    try:
        found = _litellm().get_model_info(model).get("max_input_tokens")
    except Exception:  # noqa: BLE001
        return None
    return int(found) if found else None


def complete(
    model: str,
    messages: Sequence[Mapping[str, str]],
    settings: Mapping[str, Any],
    *,
    api_base: str | None,
    api_key: str | None,
    timeout_s: float,
) -> dict[str, Any]:
    """Send one request, once, and wait for the whole answer.

    Not streamed: of a stream litellm tells the model asked for, not the one that answered, and makes
    up a finish reason when the stream just ends.

    Returns:
        model, text, finish_reason, in_tok, out_tok; tokens are None where the server did not count.

    Raises:
        CallError: it failed; nothing was tried again.
    """
    litellm = _litellm()
    arguments: dict[str, Any] = {
        "model": model,
        "messages": [dict(message) for message in messages],
        **settings,
        "timeout": timeout_s,
        "max_retries": 0,
        "num_retries": 0,
    }
    if api_base:
        arguments["api_base"] = api_base
    if api_key:
        arguments["api_key"] = api_key
    try:
        response = litellm.completion(**arguments)
    except Exception as error:
        raise _named(error) from error
    return _read(response)


def _read(response: Any) -> dict[str, Any]:
    choices = getattr(response, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        raise CallError(failures.MALFORMED, "the server's answer holds no choice")
    message, usage = choices[0].message, getattr(response, "usage", None)
    in_tok, out_tok = (int(getattr(usage, name, 0) or 0) for name in ("prompt_tokens", "completion_tokens"))
    text = message.content
    if text is None:
        text = getattr(message, "refusal", None) or ""
    return {
        "model": str(response.model or ""),
        "text": str(text),
        "finish_reason": choices[0].finish_reason,
        "in_tok": in_tok or None,  # litellm answers 0 where the server did not count
        "out_tok": out_tok if in_tok else None,
    }


def _named(error: Exception) -> CallError:
    """What litellm raised, by its kind."""
    chain = _chain(error)
    names = {name for one in chain for name in (cls.__name__ for cls in type(one).__mro__)}
    text = str(error)
    status = getattr(error, "status_code", None)
    kind = failures.BAD_REQUEST
    if "RateLimitError" in names:
        quota = any("insufficient_quota" in str(vars(one).get("body", "")) + str(one) for one in chain)
        kind = failures.QUOTA if quota else failures.RATE_LIMITED
    elif names & {"AuthenticationError", "PermissionDeniedError"} or status in (401, 403):
        kind = failures.UNAUTHORIZED
    elif names & {"Timeout", "APITimeoutError"}:
        kind = failures.TIMEOUT
    elif "JSONDecodeError" in names or "Expecting value" in text:
        kind = failures.MALFORMED
    elif names & {"RemoteProtocolError", "ReadError", "IncompleteRead"}:
        kind = failures.CUT_STREAM
    elif names & {"APIConnectionError", "ConnectError", "ConnectionError"}:
        kind = failures.CONNECTION
    elif "ContextWindowExceededError" in names:
        kind = failures.CONTEXT_TOO_LONG
    elif "ContentPolicyViolationError" in names:
        kind = failures.CONTENT_FILTER
    elif "NotFoundError" in names or status == 404:
        kind = failures.NOT_FOUND
    elif isinstance(status, int) and status >= 500:
        kind = failures.SERVER_ERROR
    root = chain[-1]
    if kind in failures.PERHAPS_PAID and str(root) not in text:  # "Connection error." alone helps nobody
        text = f"{text} ({type(root).__name__}: {root})"
    return CallError(kind, redact_text(" ".join(text.split()), _ERROR_CHARS), _retry_after(chain))


def _chain(error: BaseException) -> list[BaseException]:
    chain = [error]
    while len(chain) < 10 and (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    return chain


def _retry_after(chain: list[BaseException]) -> float | None:
    for one in chain:
        headers = getattr(getattr(one, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        try:
            if value is not None:
                return max(0.0, float(value))
        except ValueError:
            continue
    return None
