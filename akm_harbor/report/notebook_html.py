"""An executed notebook as one offline HTML page: outputs only, no code, no request."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

import akm_harbor
from akm_harbor.errors import AkmHarborError
from akm_harbor.report.notebooks import read_notebook
from akm_harbor.report.offline import external_references
from akm_harbor.report.page import render
from akm_harbor.report.parameters import TAG
from akm_harbor.report.verdict import write_output


def export_html(executed: Path, output: Path, title: str | None = None) -> Path:
    """Write the notebook's text and outputs as one HTML file in the house style.

    nbconvert's page loads MathJax, require.js and mermaid from elsewhere; its bare `basic` template does
    not, and the result is checked.

    Raises:
        AkmHarborError: an output refers to something outside the page.
    """
    from nbconvert import HTMLExporter

    notebook = read_notebook(executed)
    notebook.cells = [c for c in notebook.cells if not {TAG, "injected-parameters"} & set(c.metadata.get("tags", []))]
    exporter = HTMLExporter(template_name="basic", exclude_input=True, exclude_input_prompt=True)
    exporter.exclude_output_prompt = True
    exporter.mathjax_url = exporter.require_js_url = exporter.mermaid_js_url = ""
    body, _ = exporter.from_notebook_node(notebook)
    outside = external_references(body)
    if outside:
        raise AkmHarborError(
            f"an output refers to {outside[0]!r}, outside the page",
            path=executed,
            hint="Embed images as data; the page is to be one file.",
        )
    about: dict[str, Any] = notebook.metadata.get("akm_harbor", {})
    context = {
        "title": title or executed.stem,
        "version": akm_harbor.__version__,
        "body": Markup(body),  # noqa: S704  (nbconvert's page body; scripts cannot run under the page's policy)
        "about": about,
    }
    write_output(output, render("notebook.html.j2", context))
    return output
