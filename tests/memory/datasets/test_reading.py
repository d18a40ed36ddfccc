"""Streaming JSON: bounded memory, and a word for every way a file can be broken."""

import json
import random
import tracemalloc

import pytest

from akm_harbor.memory.datasets import reading


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def small_chunks(monkeypatch):
    """Every boundary case of a 4 MB chunk, at the size of a test."""
    monkeypatch.setattr(reading, "_CHUNK", 7)
    monkeypatch.setattr(reading, "_SLACK", 6)


RECORDS = [
    {"a": 'quote " backslash \\ brace } bracket ]', "b": [1, -2.5e3, None, True]},
    {},
    {"é": "naïve 日本語 🎉", "nested": {"x": [{"y": "\n"}]}},
    {"long": "x" * 500},
]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_arrays_are_read_across_chunk_borders(tmp_path, small_chunks, indent, ascii_only):
    path = write(tmp_path / "f.json", json.dumps(RECORDS, indent=indent, ensure_ascii=ascii_only))
    assert list(reading.iter_records(path)) == RECORDS


def test_json_lines_are_read_too(tmp_path, small_chunks):
    path = write(tmp_path / "f.jsonl", "\n".join(map(json.dumps, RECORDS)) + "\n\n")
    assert list(reading.iter_records(path)) == RECORDS


def test_a_byte_order_mark_and_an_empty_array_are_no_problem(tmp_path):
    assert list(reading.iter_records(write(tmp_path / "a", "\ufeff[{}]"))) == [{}]
    assert list(reading.iter_records(write(tmp_path / "b", " [ ] "))) == []


def test_every_truncation_is_an_error_and_never_a_short_list(tmp_path, small_chunks):
    text = json.dumps(RECORDS, ensure_ascii=False)
    rng = random.Random(3)
    for cut in sorted({1, len(text) - 1, *rng.sample(range(1, len(text)), 60)}):
        path = write(tmp_path / "cut.json", text[:cut])
        with pytest.raises(reading.TruncatedError):
            list(reading.iter_records(path))


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", reading.WrongSchemaError, "is empty"),
        ("hello", reading.WrongSchemaError, "begins with 'h'"),
        ('["text"]', reading.WrongSchemaError, "record 0 is str"),
        ("[{} {}]", reading.InvalidJsonError, "where `,` or `]` was expected"),
        ("[{}] trailing", reading.InvalidJsonError, "text after the array"),
        ('[{"a": nope, "b": "' + "x" * 200 + '"}]', reading.InvalidJsonError, "record 0 is not JSON"),
        ("[{}, ]", reading.InvalidJsonError, "record 1 is not JSON"),
    ],
)
def test_other_damage_is_named_with_its_place(tmp_path, text, error, said):
    with pytest.raises(error, match=said.replace("[", r"\[").replace("]", r"\]")):
        list(reading.iter_records(write(tmp_path / "f.json", text)))


def test_bytes_that_are_no_text_and_files_that_are_not_there(tmp_path):
    path = tmp_path / "latin.json"
    path.write_bytes(b'[{"a": "caf\xe9"}]')
    with pytest.raises(reading.InvalidJsonError, match="not UTF-8"):
        list(reading.iter_records(path))
    with pytest.raises(reading.DatasetMissingError, match="no such file"):
        list(reading.iter_records(tmp_path / "gone.json"))
    with pytest.raises(reading.DatasetError, match="cannot be read"):
        list(reading.iter_records(tmp_path))


def test_half_of_a_surrogate_pair_becomes_a_character_that_can_be_stored(tmp_path):
    (tmp_path / "a.json").write_text(r'[{"a": "x\ud83dy", "b\uDE00": ["\ud83d\ude00"]}, {"c": 1}]')
    assert list(reading.iter_records(tmp_path / "a.json")) == [{"a": "x\ufffdy", "b\ufffd": ["\U0001f600"]}, {"c": 1}]
    assert reading.read_json(tmp_path / "a.json")[0]["a"] == "x\ufffdy"


def test_deep_nesting_is_refused_not_fatal(tmp_path):
    path = write(tmp_path / "deep.json", "[" + '{"a":' * 200_000 + "1" + "}" * 200_000 + "]")
    with pytest.raises(reading.InvalidJsonError, match="nested too deeply"):
        list(reading.iter_records(path))


@pytest.mark.parametrize("read", [reading.read_json, lambda path: list(reading.iter_records(path))])
def test_a_number_of_thousands_of_digits_is_refused(tmp_path, read):
    path = write(tmp_path / "digits.json", '[{"a": ' + "9" * 5000 + "}]")
    with pytest.raises(reading.InvalidJsonError, match="5000 digits"):
        read(path)


def test_memory_is_bounded_by_the_record_not_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_CHUNK", 1 << 16)
    path = write(tmp_path / "f.json", json.dumps([{"t": "x" * 10_000}] * 1000))
    tracemalloc.start()
    count = sum(1 for _ in reading.iter_records(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 1000
    assert peak < 1_000_000 < path.stat().st_size / 9


def test_digests(tmp_path):
    path = write(tmp_path / "f", "abc")
    assert reading.file_sha256(path).startswith("ba7816bf")
    one = reading.tree_sha256(tmp_path, [path])
    path.rename(tmp_path / "g")
    assert reading.tree_sha256(tmp_path, [tmp_path / "g"]) != one
    with pytest.raises(reading.DatasetMissingError):
        reading.file_sha256(tmp_path / "gone")


def test_small_files_whole(tmp_path):
    assert reading.read_json(write(tmp_path / "a", '{"x": 1}')) == {"x": 1}
    with pytest.raises(reading.TruncatedError):
        reading.read_json(write(tmp_path / "b", '{"x": [1, 2'))
    with pytest.raises(reading.InvalidJsonError, match="line 1"):
        reading.read_json(write(tmp_path / "c", '{"x": nope, "y": 12345}'))
    with pytest.raises(reading.DatasetMissingError):
        reading.read_json(tmp_path / "gone")
