import datetime as dt
import decimal
import json
import math
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akm_harbor.errors import UsageError
from akm_harbor.report.parameters import check_names, declared, encode, parse_assignments

GOOD = [
    (Path("a/b"), "a/b"),
    ((1, 2), [1, 2]),
    (np.int64(3), 3),
    (np.bool_(False), False),
    (np.float64(1.5), 1.5),
    (pd.Timestamp("2026-01-02"), "2026-01-02T00:00:00"),
    (dt.date(2026, 1, 2), "2026-01-02"),
    ({"a": [1, None, {"b": (True,)}]}, {"a": [1, None, {"b": [True]}]}),
    ("a\"b'c\n", "a\"b'c\n"),
]
BAD = [{1, 2}, b"ab", {1: "a"}, math.nan, math.inf, np.float64("nan"), decimal.Decimal("1.5"), np.array([1]), object()]


@pytest.mark.parametrize(("value", "expected"), GOOD, ids=[type(v).__name__ for v, _ in GOOD])
def test_faithful_forms(value, expected):
    found = encode(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("value", BAD, ids=[type(v).__name__ for v in BAD])
def test_unfaithful_forms_are_refused_by_name(value):
    with pytest.raises(UsageError, match="level"):
        encode(value, "level")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_json_values_pass_unchanged(value):
    assert encode(value) == value
    assert json.loads(json.dumps(encode(value))) == value


def test_assignments():
    found = parse_assignments(["a=1", "b=0.5", "c=true", "d=null", "e=x=y", "f=", "g=1e999", "h=nan"])
    assert found == {"a": 1, "b": 0.5, "c": True, "d": None, "e": "x=y", "f": "", "g": "1e999", "h": "nan"}
    for bad in ("a", "=1", "a b=1"):
        with pytest.raises(UsageError, match="is not NAME=VALUE"):
            parse_assignments([bad])


def notebook(*cells):
    made = nbformat.v4.new_notebook()
    for source, tags in cells:
        made.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
    return made


def test_declared_reads_literals_of_the_tagged_cell():
    found = declared(notebook(("import os", []), ("a = 1  # number\nb: str = 'x'\nc: int", ["parameters"])))
    assert found == {"a": "1", "b": "'x'"}
    for cells in ([], [("a = 1", ["parameters"])] * 2):
        with pytest.raises(UsageError, match="exactly one"):
            declared(notebook(*cells))


def test_unknown_parameter_lists_near_matches():
    with pytest.raises(UsageError, match=r"(?s)no parameter .polcy.*Did you mean policy\?.*It has baseline, policy"):
        check_names(["polcy"], ["policy", "baseline"])
