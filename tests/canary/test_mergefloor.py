import json
import shutil
from pathlib import Path

import pytest

from akm_harbor.canary.bundle import BundleAsset, read_bundle
from akm_harbor.canary.mergefloor import check_bundles, check_folders, check_merge, check_proposals
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.problems import Problems
from akm_harbor.tables.sqlite import StoreSchemaError
from tests.canary.support import execute, recorded


def _asset(name: str, body: str, *xrefs: str) -> BundleAsset:
    return BundleAsset(f"memories/{name}", body, xrefs, 0)


def test_every_recorded_merge_is_measured_as_akm_measured_it() -> None:
    steps = [step for step in recorded("collapse/detector-steps.json") if step["floors"]]
    checked = 0
    for number, step in enumerate(steps, 1):
        for merge, floor in zip(recorded(f"collapse/merges-{number}.json"), step["floors"], strict=True):
            parts = [BundleAsset(p["ref"], p["body"], tuple(p["xrefs"]), 0) for p in merge["participants"]]
            found = check_merge(_asset(merge["name"], merge["mergedBody"], *merge["mergedXrefs"]), parts)
            assert (found.passed, found.required, found.named, found.retention) == (
                floor["passed"],
                floor["provenanceBefore"],
                floor["provenanceAfter"],
                floor["specificityRetention"],
            )
            checked += 1
    assert checked == 21


def test_the_merges_of_a_real_store() -> None:
    checked = 0
    for step in recorded("real/steps.json"):
        for merge, floor in zip(step["merges"], step["floors"], strict=True):
            parts = [BundleAsset(p["ref"], p["body"], tuple(p["xrefs"]), 0) for p in merge["participants"]]
            found = check_merge(_asset(merge["name"], merge["mergedBody"], *merge["mergedXrefs"]), parts)
            assert found.passed == floor["passed"]
            assert found.retention == floor["specificityRetention"]
            checked += 1
    assert checked == 13


def test_exactly_six_words_of_ten_are_enough() -> None:
    parts = [_asset("a", "one two three four five"), _asset("b", "six seven eight nine ten")]
    refs = ("memories/a", "memories/b")
    assert check_merge(_asset("m", "One two two three four five six", *refs), parts).passed
    short = check_merge(_asset("m", "one two three four five", *refs), parts)
    assert (short.passed, short.retention, short.missing) == (False, 0.5, ())


def test_provenance_reaches_back_through_the_participants() -> None:
    parts = [_asset("a", "x", "memories/older"), _asset("b", "y")]
    found = check_merge(_asset("m", "x y", "bench//memories/a", "memory:b"), parts)
    assert (found.passed, found.missing, found.required) == (False, ("memories/older",), 3)
    assert check_merge(_asset("m", "x y", "memories/a", "memories/b", "memories/older"), parts).passed


def test_merges_are_found_between_two_bundles() -> None:
    before = {a.ref: a for a in (_asset("a", "one two"), _asset("b", "three four"), _asset("c", "x"), _asset("d", "y"))}
    merged = _asset("ab", "one two three four", "memories/a", "memories/b")
    kept = _asset("c", "x", "memories/d")  # took d in, and still is c
    report = check_bundles(before, {merged.ref: merged, kept.ref: kept})
    assert [(m.merged, m.participants, m.passed) for m in report.merges] == [
        ("memories/ab", ("memories/a", "memories/b"), True),
        ("memories/c", ("memories/d", "memories/c"), False),
    ]
    assert report.merges[1].retention == 0.5
    assert report.vanished == ()
    assert report.violations == 1


def test_what_nobody_names_is_listed() -> None:
    before = {a.ref: a for a in (_asset("a", "one"), _asset("b", "two"))}
    bland = _asset("general", "general notes")
    report = check_bundles(before, {bland.ref: bland})
    assert (report.merges, report.vanished) == ((), ("memories/a", "memories/b"))


def test_a_note_that_refers_to_a_living_asset_is_no_merge() -> None:
    before = {a.ref: a for a in (_asset("a", "one"), _asset("b", "two"))}
    after = {**before, "memories/b": _asset("b", "two", "memories/a"), "memories/n": _asset("n", "new", "memories/a")}
    assert check_bundles(before, after).merges == ()


def _write(folder: Path, name: str, body: str, matter: str = "") -> None:
    path = folder / "memories" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\ndescription: {name}\n{matter}---\n\n{body}\n" if matter is not None else body)


def test_reading_bundles_from_disk(tmp_path: Path) -> None:
    _write(tmp_path, "a", "one two", "xrefs: [memories/x]\ngeneration: 2\n")
    _write(tmp_path, "bad", "body", "tags: [\n")
    (tmp_path / "skills" / "s").mkdir(parents=True)
    (tmp_path / "skills" / "s" / "SKILL.md").write_text("no frontmatter")
    (tmp_path / "README.md").write_text("not an asset")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.md").write_text("x")
    (tmp_path / "memories" / "link.md").symlink_to("/etc/hostname")
    problems = Problems()
    found = read_bundle(tmp_path, problems)
    assert sorted(found) == ["memories/a", "memories/bad", "skills/s"]
    assert (found["memories/a"].xrefs, found["memories/a"].generation) == (("memories/x",), 2)
    assert found["memories/a"].body.strip() == "one two"
    assert [problem.kind for problem in problems] == ["frontmatter-invalid"]
    with pytest.raises(AkmHarborError, match="no such bundle"):
        read_bundle(tmp_path / "nowhere", problems)
    (tmp_path / "hollow").mkdir()
    with pytest.raises(AkmHarborError, match="no Markdown asset"):
        read_bundle(tmp_path / "hollow", problems)


def test_two_folders(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    _write(before, "a", "one two three")
    _write(before, "b", "four five six")
    shutil.copytree(before, after)
    for name in ("a", "b"):
        (after / "memories" / f"{name}.md").unlink()
    _write(after, "ab", "bland", "xrefs: [memories/a]\n")
    report = check_folders(before, after, Problems())
    assert [(merge.merged, merge.passed) for merge in report.merges] == [("memories/ab", False)]
    assert report.vanished == ("memories/b",)
    assert check_folders(before, after, Problems(), min_retention=0.1).merges[0].passed


def test_proposals_are_checked_before_they_are_accepted(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    _write(bundle, "a", "one two three")
    _write(bundle, "b", "four five six")
    good = "---\nxrefs: [memories/a, memories/b]\n---\none two three four five six"
    state = execute(
        tmp_path / "state.db",
        "CREATE TABLE proposals (id TEXT, ref TEXT, status TEXT, content TEXT, frontmatter_json TEXT);",
        rows=[
            (
                "INSERT INTO proposals VALUES (?,?,?,?,?)",
                [
                    ("1", "bench//memories/ab", "pending", good, None),
                    ("2", "memories/ab2", "pending", "bland", json.dumps({"xrefs": ["memories/a", "memories/b"]})),
                    ("3", "memories/a", "pending", "one two", "{}"),
                    ("4", "memories/old", "accepted", good, None),
                    ("5", None, "pending", None, None),
                ],
            )
        ],
    )
    problems = Problems()
    report = check_proposals(state, bundle, problems)
    assert [(merge.merged, merge.passed) for merge in report.merges] == [("memories/ab", True), ("memories/ab2", False)]
    assert [problem.kind for problem in problems] == ["proposal-unreadable"]
    assert len(check_proposals(state, bundle, problems, statuses=["accepted"]).merges) == 1
    with pytest.raises(StoreSchemaError, match="proposals"):
        check_proposals(execute(tmp_path / "other.db", "CREATE TABLE x (y);"), bundle, problems)
