"""Arms as text."""

import pytest

from akm_harbor.errors import UsageError
from akm_harbor.memory.backends.registry import NAMES, make_backend, parse_arm
from akm_harbor.memory.protocol import BackendError, Description


def test_labels_are_canonical_and_name_no_place_of_this_machine():
    arm = parse_arm("akm:synthesis=keywords,path=/opt/akm,command=search,query=keywords")
    assert arm.label == "akm:command=search,synthesis=keywords,query=keywords"
    assert parse_arm("akm").label == "akm:command=curate,synthesis=lead"
    assert parse_arm("bm25").label == "bm25"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bm26", "no backend 'bm26'"),
        ("bm25:k1=2", "has no option 'k1'"),
        ("akm:synthesis", "is not name=value"),
        ("akm:synthesis=", "is not name=value"),
        ("bm25:query=rewrite", "no query transform"),
    ],
)
def test_what_cannot_be_meant_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        parse_arm(text)


@pytest.mark.parametrize("name", ["none", "full", "oracle", "bm25", "bow", "grep"])
def test_backends_that_need_nothing_describe_themselves(tmp_path, name):
    assert name in NAMES
    described = make_backend(parse_arm(name), tmp_path).describe()
    assert isinstance(described, Description)
    assert (described.name, bool(described.version)) == (name, True)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(BackendError, match="no such program"):
        make_backend(parse_arm(f"akm:path={tmp_path / 'none'}"), tmp_path)
    with pytest.raises(BackendError, match="is not an embedding model"):
        make_backend(parse_arm(f"dense:model={tmp_path}"), tmp_path)
    with pytest.raises(UsageError, match="no body setting"):
        make_backend(parse_arm("akm:body=all"), tmp_path)
