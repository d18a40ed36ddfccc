"""Matplotlib figures as inline SVG: deterministic, readable without colour, no request, no script."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from akm_harbor.report.text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASELINE = "#b35900"
TREATMENT = "#005b94"
INK = "#1a1d21"
SOFT = "#5b6470"
LINE = "#d9dee4"
SERIES = ("#005b94", "#b35900", "#00664f", "#8a4f9e", "#7a5b00", "#3c3c3c")
"""Told apart by colour-blind readers and in grey; figures still pair them with a shape or a label."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "text.usetex": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": SOFT,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "figure.dpi": 72,
}
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', 'Liberation Sans', sans-serif"


@contextmanager
def figure(width: float = 5.6, height: float = 3.0) -> Iterator["tuple[Figure, Axes]"]:
    """A figure in the house style, closed again at the end; needs no display and no pyplot state.

    Args:
        width: inches; at 72 units an inch, 5.6 is what a phone can still show readably.
        height: inches.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(drawn)
        yield drawn, drawn.add_subplot()


def to_svg(drawn: "Figure", title: str, description: str) -> Markup:
    """The figure as inline SVG with a title and a description for a screen reader.

    Call it inside `figure(...)`. Ids are derived from the title, so that figures of one page do not clash.
    """
    import matplotlib as mpl

    buffer = StringIO()
    with mpl.rc_context({"svg.hashsalt": title}):
        drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*|font: ([\d.]+px) [^;\"]*", _font, svg)
    label = f"<title>{escape(visible(title))}</title><desc>{escape(visible(description))}</desc>"
    head, _, rest = svg.partition(">")
    head = re.sub(r' (?:width|height)="[^"]*"', "", head)
    return Markup(f'{head} role="img">{label}{rest}')  # noqa: S704  (matplotlib escapes the text it draws)


def _font(match: re.Match[str]) -> str:
    fonts = _FONTS
    return f"font: {match.group(1)} {fonts}" if match.group(1) else f"font-family: {fonts}"
