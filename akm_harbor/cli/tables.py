"""`akm-harbor tables`: what the columns of every table mean, from their declarations."""

from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli.say import say
from akm_harbor.errors import UsageError

if TYPE_CHECKING:
    from akm_harbor.tables.columns import Table

_INTRO = """# Tables

A dataset is a folder with one folder a table, `<dataset>/<table>/*.parquet`, and a `manifest.json` that says what it
was made from. Every column is declared once, in the code; this page is made from the declarations with
`akm-harbor tables`. All columns are nullable in the files; a **bold** one is always filled, else the `problems` table
says why. Times are UTC, in microseconds. The schema version is in each file's metadata. The manifest's `holds` tells
how many columns and rows each table was written with: a table with fewer is refused, since what is absent would read
as not known.

Any reader of Parquet reads them, e.g. `duckdb -c "select arm, avg(reward) from 'data/trials/*.parquet' group by arm"`.
"""


def tables(
    name: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="One table; without it, all of them.")] = None,
) -> None:
    """Explain the tables and their columns, as Markdown.

    Example: `akm-harbor tables trials`
    """
    known = declared()
    if name is None:
        say(page(), nl=False)
        return
    found = [table for table in known if table.name == name]
    if not found:
        raise UsageError(f"no table {name!r}", hint=f"One of: {', '.join(t.name for t in known)}.")
    say(found[0].markdown(), nl=False)


def declared() -> "list[Table]":
    """All tables of the package, in the order of the studies."""
    from importlib import import_module

    from akm_harbor.tables.columns import Table

    rooms = ("trials.columns", "tables.problems", "memory.columns", "canary.columns")
    found: list[Table] = []
    for room in rooms:
        values = vars(import_module(f"akm_harbor.{room}")).values()
        found += [value for value in values if isinstance(value, Table) and value not in found]
    return found


def page() -> str:
    """The whole page, docs/tables.md."""
    return "\n".join([_INTRO, *(table.markdown() for table in declared())])
