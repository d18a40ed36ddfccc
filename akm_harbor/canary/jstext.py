"""Text and number habits of JavaScript, where a number must come out as akm writes it.

akm runs on a JavaScript engine. What it calls white space, how long it thinks a word is,
how it orders two names and how it prints a fraction differ from Python in the corners, and
the corners end up in stored rows.
"""

import re
from decimal import ROUND_HALF_UP, Decimal

# ECMAScript WhiteSpace and LineTerminator. Python's `\s` adds U+001C..U+001F and U+0085, and lacks U+FEFF.
_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
SPACE_RUN = re.compile(f"[{_SPACE}]+")
NOT_WORD = re.compile(f"[^a-zA-Z0-9_{_SPACE}]")


def words(text: str) -> list[str]:
    """Split on white space as a split on a run of it does in JavaScript, without the empty pieces."""
    if text.isascii() and text.isprintable():
        return text.split()  # only blanks to split at, and several times faster
    return [word for word in SPACE_RUN.split(text) if word]


def collapsed(text: str) -> str:
    """Lower case, one space between words, none around them."""
    return " ".join(words(text.lower()))


def utf16_length(text: str) -> int:
    """`text.length`: UTF-16 code units, so a character outside the basic plane counts twice."""
    return len(text) + sum(char > "\uffff" for char in text)


def code_unit_key(text: str) -> bytes:
    """A sort key that orders strings by UTF-16 code units, as `<` and `sort()` do."""
    return text.encode("utf-16-be", "surrogatepass")


def fixed(value: float, digits: int) -> str:
    """`value.toFixed(digits)`: exact ties round away from zero, where Python rounds to even."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def number(value: float) -> str:
    """A number in a template string: no `.0` after a whole one."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
