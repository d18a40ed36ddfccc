"""One-file HTML pages: Jinja2 with autoescape, inline CSS, no script, no request to anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from akm_harbor.errors import AkmHarborError
from akm_harbor.report.offline import external_references
from akm_harbor.report.text import DASH, short, slug, visible

TEMPLATES = Path(__file__).resolve().parent / "templates"


def _finalize(value: object) -> object:
    """Every printed value passes here: text is made visible, None is a dash, figures stay as they are."""
    if value is None:
        return DASH
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def environment(*folders: Path) -> Environment:
    """A Jinja2 environment over the shared templates and a study's own."""
    env = Environment(
        loader=ChoiceLoader([FileSystemLoader(str(folder)) for folder in (*folders, TEMPLATES)]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(short=short, slug=slug)
    return env


def render(template: str, context: Mapping[str, Any], *folders: Path) -> str:
    """Render a page and check that it asks for nothing from outside.

    Args:
        template: name of the template, found in `folders` first, then among the shared ones.
        context: what it shows; strings are escaped, `Markup` is not.
        folders: a study's own template folders.

    Raises:
        AkmHarborError: the page refers to something outside itself.
    """
    html = environment(*folders).get_template(template).render(**context)
    outside = external_references(html)
    if outside:
        raise AkmHarborError(f"the rendered page refers to {outside[0]!r}, outside itself", hint="Please report this.")
    return html
