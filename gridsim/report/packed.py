"""Columns of numbers as text that a page embeds: the narrowest types, deflated where they are many."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["TICKS", "encoded", "narrowed"]

TICKS = 2**31 - 1
"""The largest number of a column of whole ones; larger numbers are floats."""

_PLAIN_BYTES = 200_000
"""Up to here columns are embedded as they are; beyond they are deflated and the browser inflates them.

Before that the bytes of a column are put in order of their place in a number, all lowest bytes first: those of high
places are much alike, and a fifth is saved.
"""


def encoded(*groups: Mapping[str, Any]) -> bool:
    """Turn all columns into text; whether that is deflated."""
    columns = [column for group in groups for column in _columns(group)]
    packed = sum(int(column["bytes"]) for column in columns) > _PLAIN_BYTES
    for column in columns:
        _encode(column, packed)
    return packed


def narrowed(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Narrowest type that holds the values; text comes later, when the size of all is known."""
    if values.dtype.kind == "f" or (len(values) and values.max() > TICKS):
        exact = values.astype("<f8")
        return {"type": "f8", "length": len(exact), "bytes": exact.nbytes, "data": exact}
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    kind = "u1" if low >= 0 and high < 2**8 else "u2" if low >= 0 and high < 2**16 else "i4"
    array = values.astype(f"<{kind}")
    return {"type": kind, "length": len(array), "bytes": array.nbytes, "data": array}


def _columns(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [value for value in group.values() if isinstance(value, dict)]


def _encode(column: dict[str, Any], deflate: bool) -> None:
    values = column.pop("data")
    del column["bytes"]
    if deflate:
        planes = values.view(np.uint8).reshape(len(values), values.itemsize).T.tobytes()
        column["data"] = base64.b64encode(zlib.compress(planes, 7)).decode("ascii")
    else:
        column["data"] = base64.b64encode(values.tobytes()).decode("ascii")
