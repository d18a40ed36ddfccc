"""Take secrets out of text and JSON before they reach a table.

Two rules, both needed: a value under a name that means a secret (`apiKey`, `AWS_SECRET_ACCESS_KEY`)
goes whatever it looks like, and a text that looks like a secret (`sk-…`, `Bearer …`) goes wherever
it stands. Numbers and booleans stay: `max_tokens: 4096` is no secret.
"""

import re
from functools import lru_cache
from typing import Any

REDACTED = "[REDACTED]"
MARGIN = 64
"""How far beyond a cut we still look: enough of a secret cut in half to know it by."""

_SECRET_NAME = re.compile(
    r"""(?ix)
    ^(?:x[-_])? (?: api[-_]?key | apikey | auth(?:orization)? | proxy[-_]authorization | cookie | set-cookie
      | password | passwd | passphrase | secret | token | credentials? | bearer | jwt | pat | private[-_]?key ) $
    | (?: api | access | secret | private | signing | encryption | master | service | account | subscription )[-_]?key $
    | (?: access | auth | api | bearer | refresh | session | security | id | bot | personal | client | oauth2? | hub
      | csrf | deploy | gitlab | github | npm | pypi | hf | slack )[-_]?token $
    | [-_]?(?: password | passwd | secret | credentials? )$
    """
)
# An environment variable's name: Harbor's own rule is wider (any TOKEN or KEY inside), ours takes the end only,
# so that MAX_OUTPUT_TOKENS and TOKENIZER stay readable.
_SECRET_VARIABLE = re.compile(r"^[A-Z0-9_]*(?:_|^)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|AUTH|PAT)$")

# A secret may follow an escaped line break inside a JSON string inside a text, where `\\b` sees the letter n.
_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"


def _token(needle: str, shape: str) -> tuple[str, re.Pattern[str], str]:
    return needle, re.compile(_START + shape), REDACTED


# (a cheap lower-case needle that must be there, the shape). Most texts hold no needle at all,
# and `in` is some thirty times faster than a regular expression.
_SHAPES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    _token("sk-", r"sk-(?:[A-Za-z]{2,8}-)*[A-Za-z0-9_-]{12,}"),
    _token("sk_", r"[srp]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    _token("gh", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    _token("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _token("glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    _token("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _token("akia", r"AKIA[0-9A-Z]{16}\b"),
    _token("asia", r"ASIA[0-9A-Z]{16}\b"),
    _token("aiza", r"AIza[0-9A-Za-z_-]{30,}"),
    _token("hf_", r"hf_[A-Za-z0-9]{20,}"),
    _token("npm_", r"npm_[A-Za-z0-9]{30,}"),
    _token("pypi-", r"pypi-[A-Za-z0-9_-]{30,}"),
    _token("gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    _token("xai-", r"xai-[A-Za-z0-9]{20,}"),
    _token("r8_", r"r8_[A-Za-z0-9]{30,}"),
    _token("pplx-", r"pplx-[A-Za-z0-9]{20,}"),
    _token("csk-", r"csk-[A-Za-z0-9]{20,}"),
    _token("fw_", r"fw_[A-Za-z0-9]{20,}"),
    _token("tvly-", r"tvly-[A-Za-z0-9-]{16,}"),
    _token("dop_v1_", r"dop_v1_[a-f0-9]{32,}"),
    _token("eyj", r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    (
        "private key-----",
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        REDACTED,
    ),
    ("bearer ", re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"), rf"\1{REDACTED}"),
    ("basic ", re.compile(r"(?i)(authorization\W{1,6}basic\s+)[A-Za-z0-9+/=]{6,}"), rf"\1{REDACTED}"),
    ("://", re.compile(r"(://[^\s/:@\"']{0,200}:)[^\s/@\"']{1,200}(?=@)"), rf"\1{REDACTED}"),
    *(
        (
            needle,
            re.compile(rf"(?i)({shape}\b[\"'\\]{{0,3}}\s*[:=]\s*[\"'\\]{{0,3}})(?!\[REDACTED)[^\s\"'\\,;&}}<>]{{6,}}"),
            rf"\1{REDACTED}",
        )
        for needle, shape in (
            ("key", r"(?:api|access|secret|private|subscription)[-_]?key"),
            ("token", r"(?:access|auth|api|refresh|session|security|bot|client)[-_]?token"),
            ("_token", r"_token"),
            ("secret", r"secret"),
            ("password", r"password"),
            ("passwd", r"passwd"),
        )
    ),
)


# The same as cheap shapes for RE2, which finds them in a whole Arrow column at once. Every text that
# `redact_text` would change holds one of them; most texts that hold one are harmless.
TEXT_GATE = (
    r"sk[-_][A-Za-z0-9_-]{10}|[rp]k_(?:live|test)_|gh[pousr]_[A-Za-z0-9]{20}|github_pat_|glpat-|xox[abeoprs]-"
    r"|A[KS]IA[0-9A-Z]{16}|AIza|hf_[A-Za-z0-9]{20}|npm_[A-Za-z0-9]{30}|pypi-|gsk_|xai-|r8_|pplx-|fw_[A-Za-z0-9]{20}"
    r"|tvly-|dop_v1_|eyJ[A-Za-z0-9_-]{8}|PRIVATE KEY-----|(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{6}"
    r"|://[^\s/:@\"']*:[^\s/@\"']+@|(?i:key|token|secret|password|passwd)[\"'\\]{0,3}\s*[:=]"
)
NAME_GATE = (
    r"(?i:(?:key|token|secret|password|passwd|passphrase|credentials?|authorization|auth|cookie|bearer|jwt)\"\s*:)"
    r"|(?i:\"(?:x[-_])?pat\"\s*:)|_PAT\"\s*:"
)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a value under this name is taken for a secret."""
    return _SECRET_VARIABLE.search(name) is not None or _SECRET_NAME.search(name) is not None


def redact_text(text: str, limit: int | None = None) -> str:
    """Replace everything in a text that looks like a secret, and cut it.

    Args:
        text: any text; it is not parsed.
        limit: keep at most so many characters. The cut is made after the search.

    Returns:
        The text, with `[REDACTED]` in the place of each secret.
    """
    if limit is not None and len(text) > limit + MARGIN:
        text = text[: limit + MARGIN]
    lowered = text.lower()
    for needle, shape, replacement in _SHAPES:
        if needle in lowered:
            text = shape.sub(replacement, text)
    return text if limit is None else text[:limit]


def redact_value(value: Any, *, limit: int | None = None, depth: int = 32) -> Any:
    """Replace secrets in a JSON value, by name and by shape; the input is left as it was.

    Args:
        value: what `json.loads` returns.
        limit: cut every string at so many characters.
        depth: how deep to look; deeper values become `[REDACTED]` (hostile nesting).
    """
    if isinstance(value, str):
        return redact_text(value, limit)
    if depth <= 0:
        return REDACTED
    if isinstance(value, dict):
        return {
            redact_text(str(key), limit): REDACTED
            if isinstance(item, str) and item and is_secret_name(str(key)) and not _is_reference(item)
            else redact_value(item, limit=limit, depth=depth - 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item, limit=limit, depth=depth - 1) for item in value]
    return value


def _is_reference(text: str) -> bool:
    """A variable's name in the place of its value says where a secret is, not what it is."""
    return re.fullmatch(r"\$\{?\w+\}?|\{env:\w+\}|\*+", text) is not None
