"""A sceptic's side: an untouched archive agrees, an altered one is named, a hostile one is refused."""

import hashlib
import io
import json
import re
import stat
import struct
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akm_harbor.ab import archive, archive_verify
from akm_harbor.ab.archive_verify import verify
from akm_harbor.ab.differences import differences
from akm_harbor.ab.export import export
from akm_harbor.ab.page_text import page_differences, printed
from akm_harbor.cli import main
from akm_harbor.errors import AkmHarborError

from .support import dataset, matrix

TRIALS = "dataset/trials/part-0.parquet"


@pytest.fixture(scope="module")
def good(tmp_path_factory, arms):
    folder = tmp_path_factory.mktemp("good")
    tasks = [{"task_name": f"task-{n:02d}", "family": f"family-{n % 3}"} for n in range(19)]
    data = dataset(folder, [*matrix("control", arms[0]), *matrix("akm", arms[1])], tasks)
    return export([data], "control", "akm", folder / "good.zip").archive


@pytest.fixture
def alter(good, tmp_path):
    """A copy with members changed by functions of their bytes, with new digests or with the old ones."""

    def altered(changes, *, sealed=True, extra=()):
        with zipfile.ZipFile(good) as opened:
            members = {n: opened.read(n) for n in opened.namelist()}
        for name, change in changes.items():
            members[name] = change(members.get(name, b""))
        if sealed and archive.CONTENTS not in changes:
            contents = json.loads(members[archive.CONTENTS])
            contents["members"] = {
                n: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()}
                for n, d in members.items()
                if n != archive.CONTENTS
            }
            members[archive.CONTENTS] = json.dumps(contents).encode()
        target = tmp_path / "altered.zip"
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
            for name, data in [*members.items(), *extra]:
                out.writestr(name, data)
        return target

    return altered


def cell(column, row, value):
    """Change one cell of a Parquet file."""

    def change(data):
        table = pq.read_table(io.BytesIO(data))
        values = table[column].to_pylist()
        assert values[row] != value
        values[row] = value
        position = table.column_names.index(column)
        table = table.set_column(position, table.schema.field(position), pa.array(values, table.schema.types[position]))
        out = io.BytesIO()
        pq.write_table(table, out)
        return out.getvalue()

    return change


def text(old, new, count=1):
    def change(data):
        assert old.encode() in data
        return data.replace(old.encode(), new.encode(), count)

    return change


def field(*path, value):
    def change(data):
        document = json.loads(data)
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value(inner[path[-1]]) if callable(value) else value
        return json.dumps(document).encode()

    return change


def names(found):
    return {(d.where, d.name) for d in found.differences}


def test_an_untouched_archive_agrees(good):
    found = verify(good)
    assert (found.outcome, found.exit_code, found.differences, found.notes) == ("agrees", 0, (), ())
    assert found.sha256 == hashlib.sha256(good.read_bytes()).hexdigest()
    assert found.n_attempts == 114
    assert found.n_lines > 200
    assert "follow from the rows of 114 attempts" in found.text()


@pytest.mark.parametrize("sealed", [True, False])
def test_one_reward_altered(alter, sealed):
    found = verify(alter({TRIALS: cell("reward", 0, 0.0)}, sealed=sealed))
    assert found.exit_code == 3
    assert ("verdict.json", "headline.difference.value") in names(found)
    assert ("verdict.json", "headline.difference.interval.low") in names(found)
    assert any(where == "report.html" for where, _ in names(found))
    assert (("contents.json", f"sha256 of {TRIALS}") in names(found)) is not sealed
    by_name = {d.name: d for d in found.differences}
    assert float(by_name["headline.difference.value"].published) == pytest.approx(8 / 57)
    assert "headline.difference.value: published 0.1403508772" in found.text()


def test_any_cell_behind_a_number(alter):
    changes = cell("cost_usd", 0, 9.0), cell("n_output_tokens", 0, 9_000_000), cell("model_name", 0, "another/model")

    def change(data):
        for one in changes:
            data = one(data)
        return data

    found = verify(alter({TRIALS: change}))
    assert found.exit_code == 3
    wanted = {"usage[0: cost_usd].baseline", "usage[3: n_output_tokens].baseline", "exit_code", "baseline.models[0]"}
    assert wanted <= {name for _, name in names(found)}
    assert ("dataset/manifest.json", "cost_usd.total") in names(found)


def test_an_attempt_moved_to_the_other_arm(alter):
    assert ("verdict.json", "baseline.n_attempts") in names(verify(alter({TRIALS: cell("arm", 0, "akm")})))


def test_a_cell_behind_no_number_is_seen_by_its_digest(alter):
    changed = {TRIALS: cell("attempt", 0, 77)}
    assert names(verify(alter(changed, sealed=False))) == {("contents.json", f"sha256 of {TRIALS}")}


def test_numbers_of_the_verdict_altered(alter):
    altered = {
        ("headline", "difference", "value"): 0.25,
        ("headline", "sign_flip", "p"): lambda p: p * (1 + 1e-6),
        ("policies", 2, "n_tasks"): 18,
        ("outcome",): "regression",
        ("tasks", 0, "difference"): -1,
        ("options", "margin"): 0.1,
        ("rule",): None,
    }

    def change(data):
        for path, value in altered.items():
            data = field(*path, value=value)(data)
        return json.dumps({**json.loads(data), "approved_by": "everyone"}).encode()

    found = verify(alter({archive.VERDICT: change}))
    assert found.exit_code == 3
    expected = {".".join(map(str, path)).replace(".2.", "[2].").replace(".0.", "[0].") for path in altered}
    assert {(w, _plain(n)) for w, n in names(found)} == {(archive.VERDICT, n) for n in {*expected, "approved_by"}}


def _plain(name):
    """List entries by position only: `policies[2: fail].n_tasks` is `policies[2].n_tasks`."""
    return re.sub(r"\[(\d+)[^\]]*\]", r"[\1]", name)


def test_the_manifest_altered_and_the_verdict_made_to_fit(alter):
    altered = {
        ("trials", "n"): 500,
        ("trials", "by_status", "scored"): 1,
        ("cost_usd", "total"): 0.5,
        ("inputs", 0, "digest"): "sha256:0",
        ("models", 0): "a/famous-model",
    }

    def change(data, *under):
        for path, value in altered.items():
            data = field(*under, *path, value=value)(data)
        return data

    found = verify(alter({archive.DATASET_MANIFEST: change, archive.VERDICT: lambda d: change(d, "manifest")}))
    assert found.exit_code == 3
    expected = {"trials.n", "trials.by_status.scored", "cost_usd.total", "inputs[0].digest", "models[0]"}
    assert {_plain(n) for w, n in names(found) if w == archive.DATASET_MANIFEST} == expected
    assert {w for w, _ in names(found)} == {archive.DATASET_MANIFEST, archive.PAGE}  # the page prints the manifest


def test_a_manifest_field_that_no_row_knows(alter):
    def change(data):
        return json.dumps({**json.loads(data), "collected_at": "2020-01-01"}).encode()

    found = verify(alter({archive.DATASET_MANIFEST: change}))
    assert (archive.VERDICT, "manifest.collected_at") in names(found)


def test_the_page_altered(alter):
    found = verify(alter({archive.PAGE: text("+14.0 points", "+41.0 points")}))
    assert found.exit_code == 3
    (difference, *_) = found.differences
    assert difference.where == archive.PAGE
    assert "+41.0 points" in difference.published
    assert "+14.0 points" in difference.derived


def test_a_figure_of_the_page_altered(alter):
    def move(data):
        page = data.decode()
        path = re.search(r'd="M ([\d.]+) ([\d.]+)', page)
        return (page[: path.start(1)] + "1.5" + page[path.end(1) :]).encode()

    found = verify(alter({archive.PAGE: move}))
    assert found.exit_code == 3
    assert "markup or a figure" in found.differences[0].name


def test_a_heading_names_the_place():
    page = (
        "<h2>Ways of counting</h2><table><tr><td>fail</td><td title='t 1'>+1.0</td></tr></table><h2>Tasks</h2><p>x</p>"
    )
    (one, *rest) = page_differences("report.html", page.replace("+1.0", "+2.0"), page)
    assert (one.name, one.published, one.derived) == ("section “Ways of counting”", "+2.0", "+1.0")
    assert not rest
    assert [line.text for line in printed(page)][:4] == ["Ways of counting", "fail", "t 1", "+1.0"]
    added = list(page_differences("p", page.replace("<p>x</p>", "<p>more</p><p>x</p>"), page))
    assert [(d.published, d.derived) for d in added] == [("more", "(absent)")]


def test_rows_added_in_another_file(alter, good):
    with zipfile.ZipFile(good) as opened:
        more = opened.read(TRIALS)
    found = verify(alter({"dataset/trials/part-1.parquet": lambda _: more}))
    assert ("verdict.json", "baseline.n_attempts") in names(found)


def test_the_question_altered(alter):
    change = field("comparison", "options", "policy", value="fail")
    found = verify(alter({archive.CONTENTS: change}))
    assert ("verdict.json", "options.policy") in names(found)
    swapped = verify(alter({archive.CONTENTS: field("comparison", "baseline", value="akm")}))
    assert swapped.exit_code == 3
    assert "not to be made again" in swapped.differences[0].derived


def test_the_readme_altered(alter):
    found = verify(alter({archive.README: text("pip install akm-harbor", "pip install akm-harbour")}))
    assert (archive.README, "its text") in names(found)


def test_a_page_by_another_version_with_its_digest(alter, good):
    def seal(data):
        contents = json.loads(data)
        with zipfile.ZipFile(good) as opened:
            page = text("+14.0 points", "+41.0 points")(opened.read(archive.PAGE))
        contents["members"][archive.PAGE]["sha256"] = hashlib.sha256(page).hexdigest()
        contents["made_with"]["code"] = "sha256:other"
        return json.dumps(contents).encode()

    found = verify(alter({archive.CONTENTS: seal, archive.PAGE: text("+14.0 points", "+41.0 points")}))
    assert (found.outcome, found.exit_code) == ("unchecked", 4)
    assert "install the version that wrote it" in found.text()


def test_rows_that_break_the_analysis_are_a_finding(alter):
    columns = {"dataset/trials/part-0.parquet": lambda data: _write(pq.read_table(io.BytesIO(data)).select(["arm"]))}
    found = verify(alter(columns))
    assert found.exit_code == 3


def _write(table):
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def test_what_an_archive_says_is_harmless_on_a_terminal(alter):
    found = verify(alter({archive.VERDICT: field("outcome", value="\x1b[2Jall fine")}))
    assert "\x1b" not in found.text()
    assert "all fine" in found.text()


def hostile(kind, data, good):
    """Archives that no export writes."""
    with zipfile.ZipFile(good) as opened:
        members = {n: opened.read(n) for n in opened.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
        data(made, members)
    return out.getvalue()


def _symlink(made, _members):
    info = zipfile.ZipInfo("dataset/tasks/part-9.parquet")
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    made.writestr(info, "/etc/passwd")


def _bomb(made, _members):
    made.writestr("dataset/tests/part-9.parquet", b"\0" * (64 << 20))


def _many_rows(made, _members):
    out = io.BytesIO()
    pq.write_table(pa.table({"x": pa.nulls(60_000_000, pa.int8())}), out)
    made.writestr("dataset/tests/part-9.parquet", out.getvalue())


HOSTILE = [
    ("../../escaped.json", "no place"),
    ("/etc/passwd", "no place"),
    ("dataset/../../x.parquet", "no place"),
    ("dataset\\trials\\part-0.parquet", "no place"),
    ("C:/windows/x.json", "no place"),
    ("dataset/trials/part-0.parquet\0.json", "no place"),
    ("dataset/", "no place"),
    ("run-me.sh", "no place"),
]


@pytest.mark.parametrize(("name", "why"), HOSTILE, ids=[n for n, _ in HOSTILE])
def test_members_that_do_not_belong(good, tmp_path, name, why):
    path = tmp_path / "bad.zip"
    path.write_bytes(hostile(name, lambda made, _: made.writestr("placeholder.json", "{}"), good))
    data = path.read_bytes()
    fake = name.encode().ljust(16, b"_")[:16] if len(name) < 16 else None
    if fake is None or b"\0" in name.encode():  # written as it is, through the library
        path.write_bytes(hostile(name, lambda made, _: made.writestr(_raw(name), "{}"), good))
    else:
        path.write_bytes(data.replace(b"placeholder.json", fake))
    with pytest.raises(AkmHarborError, match=why):
        verify(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.zip"]


def _raw(name):
    info = zipfile.ZipInfo("x")
    info.filename = info.orig_filename = name
    return info


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_symlink, "link"),
        (_bomb, "would grow from"),
        (_many_rows, "holds 60,000,000 rows"),
        (lambda made, _: [made.writestr(f"dataset/tests/part-{i}.parquet", b"") for i in range(1, 300)], "members"),
    ],
    ids=["symlink", "bomb", "rows", "many"],
)
def test_hostile_archives_are_refused(good, tmp_path, make, why):
    path = tmp_path / "bad.zip"
    path.write_bytes(hostile("", make, good))
    with pytest.raises(AkmHarborError, match=why):
        verify(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members_are_refused(good, tmp_path):
    path = tmp_path / "bad.zip"
    path.write_bytes(hostile("", lambda made, m: made.writestr(archive.VERDICT, m[archive.VERDICT]), good))
    with pytest.raises(AkmHarborError, match="twice"):
        verify(path)


def test_a_member_larger_than_it_says(good, tmp_path):
    data = bytearray(good.read_bytes())
    with zipfile.ZipFile(good) as opened:
        size = opened.getinfo(archive.VERDICT).file_size
    at = data.rindex(archive.VERDICT.encode())  # in the central directory
    assert struct.unpack_from("<I", data, at - 22) == (size,)
    struct.pack_into("<I", data, at - 22, 10)
    path = tmp_path / "bad.zip"
    path.write_bytes(bytes(data))
    with pytest.raises(AkmHarborError, match="damaged"):
        verify(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated(good, tmp_path, share):
    path = tmp_path / "cut.zip"
    data = good.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(AkmHarborError, match="damaged, or not a zip file"):
        verify(path)


def test_flipped_bytes_are_never_silent(good, tmp_path):
    data = good.read_bytes()
    path = tmp_path / "flipped.zip"
    rng = np.random.default_rng(5)
    with zipfile.ZipFile(good) as opened:
        spans = [(i.header_offset + 30 + len(i.filename), i.compress_size) for i in opened.infolist()]
    for _ in range(25):
        begin, size = spans[rng.integers(len(spans))]
        broken = bytearray(data)
        broken[begin + int(rng.integers(size))] ^= 1 + int(rng.integers(255))
        path.write_bytes(bytes(broken))
        with pytest.raises(AkmHarborError):
            verify(path)


def test_not_archives(tmp_path, alter):
    for name, content, why in (
        ("empty.zip", b"", "damaged"),
        ("text.zip", b"hello", "damaged"),
        ("none.zip", None, "cannot be read"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(AkmHarborError, match=why):
            verify(path)
    with pytest.raises(AkmHarborError, match="a folder"):
        verify(tmp_path)
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as made:
        made.writestr(archive.CONTENTS, "{}")
    with pytest.raises(AkmHarborError, match=r"lacks report\.html"):
        verify(other)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (field("schema", value="akm_harbor.ab.evidence/2"), "this version reads"),
        (field("members", value=[]), "lacks what it must hold"),
        (lambda _: b"[1]", "not a JSON object"),
        (lambda _: b"{", "not JSON"),
        (lambda _: b"[" * 100_000, "not JSON"),
        (lambda _: b'{"a": NaN}', "not JSON"),
    ],
)
def test_contents_of_another_kind(alter, change, why):
    with pytest.raises(AkmHarborError, match=why):
        verify(alter({archive.CONTENTS: change}, sealed=False))


def test_hostile_options_are_a_finding(alter):
    for value in ({"level": "nan"}, {"by": ["arm"]}, {"look": 3}, {"nothing": 1}, [1]):
        found = verify(alter({archive.CONTENTS: field("comparison", "options", value=value)}))
        assert "not to be made again" in found.differences[-1].derived


def test_parquet_that_is_none(alter):
    with pytest.raises(AkmHarborError, match="cannot be read as Parquet"):
        verify(alter({TRIALS: lambda _: b"PAR1 no"}))


def test_differences_name_list_entries_and_types():
    one = {"a": [{"name": "x", "v": 1.0}], "b": True, "c": 1}
    assert [d.name for d in differences("w", one, {"a": [{"name": "x", "v": 1.1}], "b": 1, "c": 1.0, "d": None})] == [
        "a[0: x].v",
        "b",
        "d",
    ]
    assert not list(differences("w", {"v": 0.1 + 0.2}, {"v": 0.3}))


def run(monkeypatch, capsys, *args):
    monkeypatch.setattr(sys, "argv", ["akm-harbor", *map(str, args)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    return ended.value.code or 0, told.out, told.err


def test_command_line(monkeypatch, capsys, tmp_path, arms, alter):
    data = dataset(tmp_path, [*matrix("control", arms[0]), *matrix("akm", arms[1])])
    out = tmp_path / "x.zip"
    code, told, _ = run(monkeypatch, capsys, "ab", "export", data, "-b", "control", "-t", "akm", "-o", out)
    assert code == 0
    assert hashlib.sha256(out.read_bytes()).hexdigest() in told
    code, told, _ = run(monkeypatch, capsys, "ab", "verify", out)
    assert (code, told.startswith("Agrees")) == (0, True)
    report = tmp_path / "found.json"
    bad = alter({TRIALS: cell("reward", 0, 0.0)})
    code, told, _ = run(monkeypatch, capsys, "ab", "verify", bad, "--json", report)
    assert code == 3
    assert "headline.difference.value" in told
    found = json.loads(report.read_text())
    assert found["outcome"] == "differs"
    assert len(found["differences"]) > 10
    code, _, error = run(monkeypatch, capsys, "ab", "verify", tmp_path / "missing.zip")
    assert code == 1
    assert "cannot be read" in error


def test_verify_writes_nothing_beside_the_archive(good, monkeypatch):
    before = sorted(good.parent.rglob("*"))
    verify(good)
    assert sorted(good.parent.rglob("*")) == before
    assert archive_verify.archive.SCHEMA.endswith("/1")
