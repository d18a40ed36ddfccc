from pathlib import Path

from typer.testing import CliRunner

from akm_harbor.cli.app import app
from akm_harbor.cli.tables import declared, page

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_page_is_made_from_the_declarations() -> None:
    assert PAGE.read_text() == page(), "run: akm-harbor tables > docs/tables.md"


def test_table_names_are_distinct_and_every_column_is_explained() -> None:
    names = [table.name for table in declared()]
    assert len(set(names)) == len(names)
    for table in declared():
        assert len(set(table.names)) == len(table.names), table.name
        assert table.row
        for column in table.columns:
            assert column.doc, f"{table.name}.{column.name}"


def test_every_line_of_a_table_has_four_cells() -> None:
    for line in page().splitlines():
        if line.startswith("| "):
            assert line.replace("\\|", "").count("|") == 5, line


def test_one_table_and_an_unknown_one() -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["tables", "trials"])
    assert shown.output.startswith("## `trials`")
    unknown = runner.invoke(app, ["tables", "trails"])
    assert unknown.exit_code != 0
    assert "no table 'trails'" in str(unknown.exception)
