"""What a model's tokens cost: the study's own price, a price file, else LiteLLM's table as installed."""

import math
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.json_toml import parse_json, parse_toml
from akm_harbor.study.declaration import Price

_TABLE = "model_prices_and_context_window_backup.json"


def price_of(model: str, declared: Price | None = None, price_file: Path | None = None) -> Price:
    """The price of a model.

    Args:
        model: `provider/model`.
        declared: the study's own price for it.
        price_file: TOML, `["provider/model"]` with `input`, `cache`, `output` in US dollars per million tokens;
            it goes before everything else.

    Raises:
        UsageError: no price is known, or the file is not what it should be.
    """
    if price_file is not None and (found := _from_file(price_file).get(model)):
        return found
    if declared is not None:
        return declared
    table = _litellm()
    for name in (model, model.partition("/")[2], model.rpartition("/")[2]):
        entry = table.get(name)
        if isinstance(entry, dict) and entry.get("input_cost_per_token") is not None:
            given = float(entry["input_cost_per_token"])
            cached = float(entry.get("cache_read_input_token_cost") or given)
            written = float(entry.get("output_cost_per_token") or 0.0)
            return Price(given * 1e6, cached * 1e6, written * 1e6, f"LiteLLM's table, {name}")
    raise UsageError(
        f"no price is known for {model}",
        hint='Give one: --prices FILE with ["' + model + '"] and input, cache, output in dollars per million tokens.',
    )


def _from_file(path: Path) -> dict[str, Price]:
    try:
        table = parse_toml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read as TOML: {error}", path=path) from None
    prices = {}
    for model, entry in table.items():
        names = ("input", "cache", "output")
        if not isinstance(entry, dict) or not {"input", "output"} <= entry.keys() <= set(names):
            raise UsageError(f"[{model!r}] needs input and output, and may have cache", path=path)
        full = {"cache": entry["input"], **entry}
        if not all(
            isinstance(full[n], (int, float)) and not isinstance(full[n], bool) and 0 <= full[n] < math.inf
            for n in names
        ):
            raise UsageError(f"[{model!r}] prices are finite numbers that are not negative", path=path)
        prices[model] = Price(*(float(full[n]) for n in names), source=str(path))  # type: ignore[misc, arg-type]
    return prices


@cache
def _litellm() -> dict[str, Any]:
    """The price table that comes with LiteLLM, which Harbor depends on; read without importing it."""
    found = find_spec("litellm")
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        return {}
    path = Path(places[0]) / _TABLE
    try:
        table: dict[str, Any] = parse_json(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise AkmHarborError(f"cannot be read ({error})", path=path, hint="Give prices with --prices FILE.") from None
    return table
