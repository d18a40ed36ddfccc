"""Make text from a job directory harmless and short before it is shown to anyone."""

import re
import unicodedata

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[{_BIDI}\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufeff\u200b\ud800-\udfff]")
LONGEST = 4_000
DASH = "\u2013"
"""What is printed where there is no value."""
MINUS = "\u2212"


def visible(text: str, longest: int = LONGEST) -> str:
    """Show what is there: direction marks and control characters become their code points, the end is cut.

    A right-to-left override can make a name read as another one; a megabyte line can hang a page.
    Escaping for HTML is the template's business.
    """
    cut = text[:longest]
    shown = _UNSAFE.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", cut)
    return shown if len(text) <= longest else f"{shown}… ({len(text):,} characters)"


def short(text: str, longest: int = 60) -> str:
    """A name for a table cell: one line, the middle cut out when it is long."""
    line = " ".join(visible(text, 4 * longest).split())
    if len(line) <= longest:
        return line
    head = (longest - 1) * 2 // 3
    return f"{line[:head]}…{line[-(longest - 1 - head) :]}"


def slug(text: str, longest: int = 40) -> str:
    """A safe piece of a file name or an HTML id: ASCII letters, digits and dashes."""
    plain = unicodedata.normalize("NFKD", text[: 4 * longest]).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-zA-Z0-9]+", "-", plain).strip("-").lower()[:longest] or "x"
