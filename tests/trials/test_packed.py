from typing import Any

import msgspec
import pyarrow as pa
import pytest

from akm_harbor.tables.columns import BOOL, FLOAT, INT, STRING, STRINGS
from akm_harbor.trials.packed import Column, Texts, Whole, as_arrow, packed


class Message(msgspec.Struct):
    column: Column


COLUMNS: list[tuple[list[Any], pa.DataType, type]] = [
    (["a", "bc", ""], STRING, Texts),
    (["", ""], STRING, Texts),
    (["é", "ascii", "😀 \u0000 x"], STRING, Texts),
    ([None, "é", None, "b"], STRING, Texts),
    (["a"] * 9 + [None], STRING, Texts),
    ([1, -(2**63), 2**63 - 1], INT, Whole),
    ([True, False], BOOL, Whole),
    ([1, None], INT, list),
    ([1.5, 2.0], FLOAT, list),
    ([["a", "é"], [], None], STRINGS, list),
    ([None, ["a"]], STRINGS, list),
    ([], STRING, Whole),
]


@pytest.mark.parametrize(("values", "kind", "form"), COLUMNS)
def test_columns_come_through_a_message_as_they_were(values: list[Any], kind: pa.DataType, form: type) -> None:
    column = packed(values)
    assert isinstance(column, form)
    assert as_arrow(column, kind).to_pylist() == values
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(Message(column)), type=Message).column
    array = as_arrow(sent, kind)
    array.validate(full=True)
    assert (array.type, array.to_pylist()) == (kind, values)


def test_a_column_of_several_kinds_stays_a_list() -> None:
    for values in (["a", 1], [1, "a"], [1, 2.5], [None, 1, "a"], [2**63]):
        assert packed(values) is values
