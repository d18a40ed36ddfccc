import pyarrow as pa
import pytest

from akm_harbor.tables.columns import FLOAT, INT, SCHEMA_VERSION_KEY, STRING, STRINGS, TIME, Column, Table

NOTES = Table(
    "notes",
    "one note",
    (
        Column("id", INT, "its number", required=True),
        Column("text", STRING, "what it says, a | b"),
        Column("score", FLOAT, "how good"),
        Column("tags", STRINGS, "its tags"),
        Column("at", TIME, "when", "x.json:at"),
    ),
    version=3,
)


def test_the_schema_is_explicit_nullable_and_versioned() -> None:
    schema = NOTES.schema()
    assert schema.names == NOTES.names == ["id", "text", "score", "tags", "at"]
    assert all(field.nullable for field in schema)
    assert schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert schema.metadata[SCHEMA_VERSION_KEY] == b"notes/3"


def test_rows_and_columns_give_the_same_table() -> None:
    rows = [{"id": 1, "tags": ["a"]}, {"id": 2, "text": "t", "score": 1, "at": 1_000_000}, {}]
    by_rows = NOTES.from_rows(rows)
    columns = {
        "id": [1, 2, None],
        "text": [None, "t", None],
        "score": [None, 1.0, None],
        "tags": [["a"], None, None],
        "at": [None, 1_000_000, None],
    }
    by_columns = NOTES.from_columns(columns)
    assert by_rows.equals(by_columns)
    assert by_rows.schema.equals(NOTES.schema(), check_metadata=True)


def test_columns_that_are_absent_are_null_of_their_type() -> None:
    table = NOTES.from_columns({"id": [1, 2]})
    assert table["score"].type == FLOAT
    assert table["tags"].null_count == 2


@pytest.mark.parametrize("empty", [NOTES.from_rows([]), NOTES.from_columns({}), NOTES.from_columns({"id": []})])
def test_no_rows(empty: pa.Table) -> None:
    assert (empty.num_rows, empty.schema.names) == (0, NOTES.names)


def test_undeclared_names_and_wrong_types_are_errors() -> None:
    with pytest.raises(KeyError, match="nope"):
        NOTES.from_rows([{"id": 1}, {"nope": 1}])
    with pytest.raises(KeyError, match="nope"):
        NOTES.from_columns({"nope": [1]})
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        NOTES.from_rows([{"id": "one"}])


def test_the_page_of_a_table() -> None:
    lines = NOTES.markdown().splitlines()
    assert lines[0] == "## `notes`"
    assert "Schema version 3" in lines[2]
    assert "| **`id`** | int64 | its number |  |" in lines
    assert "| `text` | string | what it says, a \\| b |  |" in lines
    assert lines[-1].endswith("| `x.json:at` |")
