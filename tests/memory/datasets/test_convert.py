"""Conversion: everything the reader found is in the Parquet; a failure leaves what was there."""

import errno
import json
import shutil

import pyarrow.parquet as pq
import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.columns import QUESTIONS, TURNS
from akm_harbor.memory.datasets import convert as convert_module
from akm_harbor.memory.datasets.convert import UNRECOGNISED, convert, converted
from akm_harbor.memory.datasets.quirks import Quirks
from akm_harbor.memory.datasets.reading import (
    DatasetMissingError,
    TruncatedError,
    WrongDigestError,
    WrongSchemaError,
    file_sha256,
)
from akm_harbor.memory.datasets.sources import find_source, sources
from akm_harbor.memory.datasets.store import Store
from akm_harbor.tables import read_frame, read_manifest, read_table
from tests.memory.datasets.helpers import LOCOMO, LONGMEMEVAL, changed, read_all

DEMOS = [name for name in sources() if name.startswith("demo-")]


def write(path, records):
    path.write_text(json.dumps(records))
    return path


@pytest.mark.parametrize("name", DEMOS)
def test_what_is_read_back_is_what_was_read(tmp_path, name):
    source = find_source(name)
    done = convert(source.path, tmp_path / "out", source=source)
    instances, problems = read_all(source.benchmark, source.path)
    back = list(Store(done.path).read())
    for one, other in zip(instances, back, strict=True):
        assert one.sessions == other.sessions
        assert one.questions == other.questions
    assert {p.kind for p in done.problems} == set(problems)
    manifest = read_manifest(done.path)
    assert manifest["questions"] == done.questions == sum(len(i.questions) for i in instances)
    assert manifest["variant"] == "demo"
    assert len(read_frame(done.path, "problems")) == len(problems)


def test_row_groups_hold_whole_histories_and_prune(tmp_path, monkeypatch):
    monkeypatch.setattr(convert_module, "_GROUP_CHARS", 60)
    records = [changed(LONGMEMEVAL, question_id=f"q{i}") for i in range(40)]
    done = convert(write(tmp_path / "f.json", records), tmp_path / "out")
    part = pq.ParquetFile(done.path / TURNS.name / "part-0.parquet")
    assert part.num_row_groups > 10
    (one,) = Store(done.path).read([17])
    assert one.questions[0].question_id == "q17"
    assert [i.instance_id for i in Store(done.path).read([3, 38])] == ["q3", "q38"]


def test_an_unknown_digest_is_said_to_be_unknown(tmp_path):
    done = convert(write(tmp_path / "f.json", [LONGMEMEVAL]), tmp_path / "out")
    assert read_manifest(done.path)["variant"] == UNRECOGNISED
    assert read_frame(done.path, QUESTIONS)["audit_flag"].isna().all()


def test_audit_flags_follow_the_digest(tmp_path, monkeypatch):
    path = write(tmp_path / "f.json", [LOCOMO])
    digest = file_sha256(path)
    known = Quirks("locomo", "locomo10", digest, "rev", "us", {"conv-1/qa0": "hallucination"})
    monkeypatch.setattr(convert_module, "quirks_for", {digest: known}.get)
    done = convert(path, tmp_path / "out")
    assert read_frame(done.path, QUESTIONS)["audit_flag"].tolist() == ["hallucination"]
    manifest = read_manifest(done.path)
    assert (manifest["variant"], manifest["revision"], manifest["audit_source"]) == ("locomo10", "rev", "us")


def test_another_file_than_the_published_one_is_refused(tmp_path):
    path = write(tmp_path / "locomo10.json", [LOCOMO])
    with pytest.raises(WrongDigestError, match="is not the published locomo"):
        convert(path, tmp_path / "out", source=find_source("locomo"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (json.dumps([LONGMEMEVAL])[:-30], TruncatedError),
        (json.dumps([LONGMEMEVAL, changed(LONGMEMEVAL, question=None)]), WrongSchemaError),
        ("[]", WrongSchemaError),
    ],
)
def test_a_failed_conversion_leaves_the_old_dataset_whole(tmp_path, text, error):
    out = tmp_path / "out"
    convert(write(tmp_path / "good.json", [LONGMEMEVAL]), out)
    before = read_table(out, QUESTIONS)
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(error):
        convert(tmp_path / "bad.json", out, "longmemeval")
    assert read_table(out, QUESTIONS).equals(before)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".out")] == []


def test_a_full_disk_is_named_and_loses_nothing(tmp_path, monkeypatch):
    out = tmp_path / "out"
    path = write(tmp_path / "f.json", [LONGMEMEVAL])
    convert(path, out)

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(AkmHarborError, match="No space left on device"):
        convert(path, out)
    monkeypatch.undo()
    assert len(read_table(out, QUESTIONS)) == 1


def test_conversion_is_done_once_and_again_when_the_file_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "cache"))
    path = write(tmp_path / "f.json", [LONGMEMEVAL])
    first = converted(path)
    calls = []
    monkeypatch.setattr(convert_module, "convert", lambda *a, **k: calls.append(a))
    assert converted(path) == first
    assert calls == []
    assert converted(first) == first  # a converted dataset is its own conversion
    write(path, [changed(LONGMEMEVAL, question_id="other")])
    converted(path)
    assert len(calls) == 1


def test_missing_files_and_wrong_kinds_are_named(tmp_path):
    with pytest.raises(DatasetMissingError):
        convert(tmp_path / "gone.json", tmp_path / "out")
    with pytest.raises(WrongSchemaError, match="one JSON file"):
        convert(tmp_path, tmp_path / "out", "locomo")
    shutil.copytree(find_source("demo-beam").path, tmp_path / "beam")
    assert convert(tmp_path / "beam", tmp_path / "out").benchmark == "beam"


def test_sessions_without_turns_survive(tmp_path):
    record = changed(LONGMEMEVAL, haystack_sessions=[[], LONGMEMEVAL["haystack_sessions"][1]])
    done = convert(write(tmp_path / "f.json", [record]), tmp_path / "out")
    (instance,) = Store(done.path).read()
    assert [len(s.turns) for s in instance.sessions] == [0, 2]
