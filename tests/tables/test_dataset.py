import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.tables import open_dataset, read_frame, read_manifest, read_table, replace_dataset
from akm_harbor.tables.columns import FLOAT, INT, STRING, STRINGS, TIME, Column, Table
from akm_harbor.tables.problems import PROBLEMS, Problems

NOTES = Table("notes", "one note", (Column("id", INT, "n"), Column("score", FLOAT, "s"), Column("at", TIME, "t")))


def write(path: Path, *ids: int) -> Path:
    with replace_dataset(path) as writer:
        writer.write(NOTES, NOTES.from_columns({"id": list(ids)}))
        writer.write_manifest({"ids": list(ids)})
    return path


def test_round_trip(tmp_path: Path) -> None:
    path = write(tmp_path / "deep" / "down" / "data", 1, 2)
    assert read_table(path, NOTES)["id"].to_pylist() == [1, 2]
    assert read_table(path, "notes", ["id"]).column_names == ["id"]
    assert read_manifest(path) == {"ids": [1, 2], "holds": {"notes": {"columns": 3, "rows": 2}}}
    frame = read_frame(path, "notes")
    assert isinstance(frame["at"].dtype, pd.ArrowDtype)
    assert frame["score"].isna().all()


def test_batches_end_up_in_one_file(tmp_path: Path) -> None:
    with replace_dataset(tmp_path / "data") as writer:
        for i in range(3):
            writer.write(NOTES, NOTES.from_columns({"id": [i]}))
        writer.write_manifest({})
    assert len(list((tmp_path / "data" / "notes").iterdir())) == 1
    assert read_table(tmp_path / "data", NOTES)["id"].to_pylist() == [0, 1, 2]


def test_replacing_takes_everything_old_away(tmp_path: Path) -> None:
    path = write(tmp_path / "data", 1)
    with replace_dataset(path) as writer:
        writer.write_manifest({"new": True})
        writer.write_extra("state.bin", b"x")
    assert sorted(p.name for p in path.iterdir()) == ["manifest.json", "state.bin"]
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_a_failure_on_the_way_leaves_the_old_one(tmp_path: Path) -> None:
    path = write(tmp_path / "data", 1)

    def failing() -> None:
        with replace_dataset(path) as writer:
            writer.write(NOTES, NOTES.from_columns({"id": [2]}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert read_table(path, NOTES)["id"].to_pylist() == [1]
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_a_manifest_is_strict_json(tmp_path: Path) -> None:
    path = write(tmp_path / "data", 1)
    with pytest.raises(ValueError, match="not JSON compliant"), replace_dataset(path) as writer:
        writer.write_manifest({"cost": float("nan")})
    assert read_manifest(path)["ids"] == [1]
    (path / "manifest.json").write_text("{")
    with pytest.raises(AkmHarborError, match="not JSON"):
        read_manifest(path)
    (path / "manifest.json").write_text("[]")
    with pytest.raises(AkmHarborError, match="not a JSON object"):
        read_manifest(path)


def test_what_is_no_dataset_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(AkmHarborError, match="no such dataset"):
        open_dataset(tmp_path / "none")
    (tmp_path / "folder").mkdir()
    with pytest.raises(AkmHarborError, match="not a dataset"):
        read_table(tmp_path / "folder", NOTES)
    (tmp_path / "folder" / "x").touch()
    with pytest.raises(AkmHarborError, match="left alone"):
        write(tmp_path / "folder", 1)
    (tmp_path / "file").touch()
    with pytest.raises(AkmHarborError, match="left alone"):
        write(tmp_path / "file", 1)


def test_an_empty_folder_may_become_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert read_manifest(write(tmp_path / "data", 1))["ids"] == [1]


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "data", 1)
    assert read_table(path, PROBLEMS).num_rows == 0
    with pytest.raises(AkmHarborError, match="has no table 'nope'"):
        read_table(path, "nope")


def test_a_damaged_file_names_its_table(tmp_path: Path) -> None:
    path = write(tmp_path / "data", 1)
    (path / "notes" / "part-0.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(AkmHarborError, match="table 'notes' cannot be read"):
        read_table(path, NOTES)


def test_an_older_dataset_lacks_columns_and_other_writers_use_other_types(tmp_path: Path) -> None:
    path = write(tmp_path / "data", 1)
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    berlin = pa.array([moment], pa.timestamp("ns", "Europe/Berlin"))
    pq.write_table(pa.table({"id": pa.array([2], pa.int32()), "at": berlin}), path / "notes" / "part-1.parquet")
    pq.write_table(pa.table({"id": pa.array([3]), "extra": ["x"]}), path / "notes" / "part-2.parquet")
    got = read_table(path, NOTES)
    assert got.schema.equals(NOTES.schema())
    assert got["id"].to_pylist() == [1, 2, 3]
    assert got["at"].to_pylist() == [None, moment, None]


def test_values_that_do_not_fit_the_declaration_name_their_table(tmp_path: Path) -> None:
    path = write(tmp_path / "data", 1)
    pq.write_table(pa.table({"id": ["many"]}), path / "notes" / "part-1.parquet")
    with pytest.raises(AkmHarborError, match="table 'notes' cannot be read"):
        read_table(path, NOTES)


def test_problems(tmp_path: Path) -> None:
    problems = Problems()
    assert problems.table().num_rows == 0
    problems.add(Path("a/b"), "kind", "detail", "action")
    assert len(problems) == 1
    assert problems.table().to_pylist() == [{"path": "a/b", "kind": "kind", "detail": "detail", "action": "action"}]
    assert json.dumps([p.kind for p in problems]) == '["kind"]'


SURE = Table("notes", "one note", (Column("id", INT, "n", required=True), Column("text", STRING, "s")))


def fill_one(path: Path) -> None:
    with replace_dataset(path) as writer:
        writer.write(SURE, SURE.from_columns({"id": [1, 2, 3], "text": ["one", "two", None]}))
        writer.write_manifest({})


def test_a_value_that_was_damaged_on_the_disk_is_no_value(tmp_path: Path) -> None:
    fill_one(tmp_path / "data")
    (part,) = (tmp_path / "data" / SURE.name).glob("*.parquet")
    whole = part.read_bytes()
    at = whole.index(b"one")  # so short that it is stored as it is
    part.write_bytes(whole[:at] + b"0" + whole[at + 1 :])
    with pytest.raises(AkmHarborError, match="CRC"):
        read_table(tmp_path / "data", SURE)


@pytest.mark.parametrize("what", ["a link", "a linked folder", "a pipe"])
def test_what_is_no_plain_file_is_not_followed(tmp_path: Path, what: str) -> None:
    for name in ("data", "other"):
        fill_one(tmp_path / name)
    folder = tmp_path / "data" / SURE.name
    if what == "a linked folder":
        shutil.rmtree(folder)
        folder.symlink_to(tmp_path / "other" / SURE.name)
    elif what == "a link":
        (folder / "part-1.parquet").symlink_to(tmp_path / "other" / SURE.name / "part-0.parquet")
    else:
        os.mkfifo(folder / "part-1.parquet")
    with pytest.raises(AkmHarborError, match="a link or a special file"):
        read_table(tmp_path / "data", SURE)


def test_a_table_without_a_column_it_cannot_do_without_is_refused(tmp_path: Path) -> None:
    fill_one(tmp_path / "data")
    (part,) = (tmp_path / "data" / SURE.name).glob("*.parquet")
    required = next(c.name for c in SURE.columns if c.required)
    (tmp_path / "data" / "manifest.json").write_text("{}")  # as another writer's, which does not tell what it holds
    pq.write_table(pq.read_table(part).drop_columns([required]), part)
    with pytest.raises(AkmHarborError, match=f"it lacks {required}"):
        read_table(tmp_path / "data", SURE)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda part: pq.write_table(pq.read_table(part).drop_columns(["score"]), part), "2 of the 3 columns"),
        (lambda part: pq.write_table(pq.read_table(part).slice(1), part), "1 of the 2 rows"),
        (lambda part: part.unlink(), "0 of the 2 rows"),
    ],
    ids=["column", "row", "file"],
)
def test_a_table_of_which_a_piece_is_gone_is_refused(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    path = write(tmp_path / "data", 1, 2)
    damage(path / NOTES.name / "part-0.parquet")
    with pytest.raises(AkmHarborError, match=said):
        read_table(path, NOTES)


def test_names_that_are_no_utf8_are_kept_as_far_as_they_can_be(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    kinds = Table("kinds", "one kind", (Column("name", STRING, "n"), Column("all", STRINGS, "a")))
    with replace_dataset(tmp_path / "data") as writer:
        writer.write(kinds, kinds.from_rows([{"name": name, "all": [name, "b"]}]))
        writer.write(kinds, kinds.from_columns({"name": [name]}))
        writer.write_manifest({"source": name})
    assert read_table(tmp_path / "data", kinds).to_pylist() == [
        {"name": "caf\ufffd", "all": ["caf\ufffd", "b"]},
        {"name": "caf\ufffd", "all": None},
    ]
    assert read_manifest(tmp_path / "data")["source"] == "caf\ufffd"
