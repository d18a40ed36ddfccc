"""The shipped tables of known defects: identifiers and kinds, and only for known digests."""

import json
import re
from collections import Counter

import pytest

from akm_harbor.memory.datasets.quirks import all_quirks, quirks_for
from akm_harbor.memory.datasets.sources import sources

SHA = re.compile(r"[0-9a-f]{64}")


def test_every_table_names_a_published_file():
    digests = {source.sha256: source for source in sources().values() if source.sha256}
    for digest, quirks in all_quirks().items():
        assert SHA.fullmatch(digest)
        assert digests[digest].variant == quirks.variant
        assert digests[digest].revision == quirks.revision


def test_locomos_audit_has_its_published_counts():
    (quirks,) = [q for q in all_quirks().values() if q.benchmark == "locomo"]
    assert Counter(quirks.score_flags.values()) == {
        "hallucination": 33,
        "temporal-error": 26,
        "attribution-error": 24,
        "ambiguous": 13,
        "incomplete": 3,
    }
    assert len(quirks.evidence_flags) == 57
    assert quirks.flag("conv-26/qa2") == "hallucination"
    assert quirks.flag("conv-26/qa1") == "wrong-citation"
    assert quirks.flag("conv-26/qa0") is None


def test_longmemevals_reported_defects_are_told_apart():
    (quirks,) = [q for q in all_quirks().values() if q.benchmark == "longmemeval"]
    assert Counter(quirks.score_flags.values()) == {"reported-wrong-answer": 4}
    assert quirks.evidence_flags == {"eac54add": "reported-wrong-evidence"}


def test_tables_hold_no_text_of_a_benchmark():
    for quirks in all_quirks().values():
        for question, kind in {**quirks.score_flags, **quirks.evidence_flags}.items():
            assert re.fullmatch(r"[\w/-]{1,40}", question), question
            assert re.fullmatch(r"[a-z-]+", kind), kind


@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_unknown_files_have_no_table(digest):
    assert quirks_for(digest) is None


def test_no_question_is_listed_twice():
    from importlib import resources

    for path in (resources.files("akm_harbor.memory.datasets") / "quirks").iterdir():
        data = json.loads(path.read_text())
        listed = [q for flags in ("score_flags", "evidence_flags") for ids in data[flags].values() for q in ids]
        assert len(listed) == len(set(listed))
