"""Count and cut the tokens of a context, with a counter that is named beside every count."""

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

_ENCODING = "cl100k_base"
_VOCABULARY = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"  # tiktoken's cache name of cl100k_base
_CHARS_PER_TOKEN = 4


@cache
def counter() -> tuple[str, Callable[[str], int]]:
    """(name, function): cl100k_base where its vocabulary is on this machine, else characters / 4.

    Nothing is fetched: the vocabulary comes from tiktoken's cache, or from the copy that
    litellm ships.
    """
    folder = _vocabulary_folder()
    if folder is None or importlib.util.find_spec("tiktoken") is None:
        return f"chars/{_CHARS_PER_TOKEN}", lambda text: -(-len(text) // _CHARS_PER_TOKEN)
    encoding = _encoding(folder)
    return _ENCODING, lambda text: len(encoding.encode_ordinary(text))


def cut(text: str, limit: int, *, keep_end: bool = False) -> str:
    """The longest beginning (or end) of a text of at most so many tokens, by the same counter."""
    if counter()[0] != _ENCODING:
        size = limit * _CHARS_PER_TOKEN
        return (text[-size:] if keep_end else text[:size]) if size else ""
    folder = _vocabulary_folder()
    assert folder is not None
    encoding = _encoding(folder)
    found = encoding.encode_ordinary(text)
    kept = found[len(found) - limit :] if keep_end else found[:limit]
    # A cut through a character of several bytes leaves a replacement character at the edge.
    return str(encoding.decode(kept if limit else [])).strip("\ufffd")


@cache
def _encoding(folder: Path) -> Any:
    import tiktoken

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        encoding = tiktoken.get_encoding(_ENCODING)
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
    return encoding


def _vocabulary_folder() -> Path | None:
    named = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folders = [Path(named)] if named else []
    litellm = importlib.util.find_spec("litellm")
    if litellm is not None and litellm.origin:
        folders.append(Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers")
    return next((folder for folder in folders if (folder / _VOCABULARY).is_file()), None)
