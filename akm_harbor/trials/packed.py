"""Columns as bytes, on their way from the process that read them to the one that writes Arrow.

A list of a hundred thousand texts is encoded, decoded and converted value by value; packed as
Arrow lays it out, it is a few copies of memory. Packing needs no Arrow, which readers never load.
The views are into the message a column came with, so that it is never copied on the way.
"""

from array import array
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import pyarrow as pa


class Texts(msgspec.Struct, frozen=True, tag="texts"):
    """A column of texts.

    Attributes:
        data: all texts as UTF-8, one after the other.
        sizes: int32 a row: how many bytes are its own, -1 where it is null.
    """

    data: memoryview
    sizes: memoryview


class Whole(msgspec.Struct, frozen=True, tag="whole"):
    """A column of whole numbers or booleans without nulls: int64 a row."""

    data: memoryview


type Column = list[Any] | Texts | Whole


def packed(values: list[Any]) -> Column:
    """A column as bytes, where all its values are of one of the common kinds; else the list itself."""
    try:
        return Whole(memoryview(array("q", values)).cast("B"))
    except (TypeError, OverflowError):
        pass
    try:
        text = "".join(values)
        if text.isascii():
            return _texts(text.encode(), array("i", map(len, values)))
    except TypeError:
        pass
    try:
        parts = [None if value is None else str.encode(value) for value in values]
    except TypeError:
        return values
    return _texts(b"".join(filter(None, parts)), array("i", [-1 if part is None else len(part) for part in parts]))


def _texts(data: bytes, sizes: "array[int]") -> Texts:
    return Texts(memoryview(data), memoryview(sizes).cast("B"))


def as_arrow(column: Column, kind: "pa.DataType") -> "pa.Array":
    """A column as an Arrow array.

    Raises:
        pyarrow.ArrowInvalid: values that are not of that type.
    """
    import numpy as np
    import pyarrow as pa

    if isinstance(column, list):
        return pa.array(column, type=kind)
    if isinstance(column, Whole):
        numbers = pa.Array.from_buffers(pa.int64(), column.data.nbytes // 8, [None, pa.py_buffer(column.data)])
        return numbers.cast(kind)
    sizes = np.frombuffer(column.sizes, np.int32)
    valid = sizes >= 0
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes * valid, out=offsets[1:])
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    texts = pa.Array.from_buffers(pa.string(), len(sizes), [bits, pa.py_buffer(offsets), pa.py_buffer(column.data)])
    return texts.cast(kind)
