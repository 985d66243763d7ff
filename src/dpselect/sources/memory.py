"""Where in memory the values of an array or table lie, by which a column is recognised as part of a table.

Addresses alone are looked at, never values. Marks of nulls, offsets of texts and truth values are left out: libraries
can keep these in memory that has nothing to do with the column.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

Span = tuple[int, int]


def shares_memory(first: Any, second: Any) -> bool:
    """Tell whether some values of two arrays or tables lie in the same memory."""
    spans = spans_of(first)
    return bool(spans) and any(low < end and start < high for start, end in spans_of(second) for low, high in spans)


def spans_of(data: Any) -> list[Span]:
    """Return the memory of an array, Series or table of NumPy, pandas, polars, Arrow or Ibis; of all else none."""
    library = type(data).__module__.lstrip("_").partition(".")[0]
    # What a library cannot show without copying it shares no memory that could be recognised.
    with contextlib.suppress(Exception):
        if isinstance(data, np.ndarray):
            return [_of_numpy(data)] if data.nbytes and data.dtype != bool else []
        if library in _OF_LIBRARY:
            return list(_OF_LIBRARY[library](data))
    return []


def _of_numpy(array: Any) -> Span:
    low, high = byte_bounds(array)
    return int(low), int(high)


def _of_pandas(data: Any) -> Iterable[Span]:
    import pandas

    if isinstance(data, pandas.DataFrame):
        return [span for place in range(data.shape[1]) for span in spans_of(data.iloc[:, place])]
    array = data.array if isinstance(data, pandas.Series | pandas.Index) else data
    if isinstance(array, pandas.Categorical):
        return spans_of(array.codes)
    if hasattr(array, "asi8"):
        return spans_of(array.asi8)
    if hasattr(array, "__arrow_array__") and getattr(array.dtype, "storage", "") != "python":
        return spans_of(array.__arrow_array__())
    return spans_of(np.asarray(array))


def _of_polars(data: Any) -> Iterable[Span]:
    import polars
    import pyarrow

    if isinstance(data, polars.DataFrame):
        return [span for column in data.get_columns() for span in spans_of(column)]
    if not isinstance(data, polars.Series):
        return []
    if isinstance(data.dtype, polars.Categorical | polars.Enum):
        data = data.to_physical()
    return spans_of(pyarrow.chunked_array(data))


def _of_arrow(data: Any) -> Iterable[Span]:
    import pyarrow

    if isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return [span for column in data.columns for span in spans_of(column)]
    if isinstance(data, pyarrow.ChunkedArray):
        return [span for chunk in data.chunks for span in spans_of(chunk)]
    if not isinstance(data, pyarrow.Array) or pyarrow.types.is_boolean(data.type):
        return []
    is_view = pyarrow.types.is_string_view(data.type) or pyarrow.types.is_binary_view(data.type)
    has_offsets = any(
        is_kind(data.type)
        for is_kind in (
            pyarrow.types.is_string,
            pyarrow.types.is_large_string,
            pyarrow.types.is_binary,
            pyarrow.types.is_large_binary,
        )
    )
    # Views lead to texts, which polars lets a join or a filter share with the table that they come from.
    buffers = data.buffers()[1:2] if is_view else data.buffers()[2 if has_offsets else 1 :]
    return [(buffer.address, buffer.address + buffer.size) for buffer in buffers if buffer is not None and buffer.size]


def _of_ibis(data: Any) -> Iterable[Span]:
    import ibis.expr.operations as operations

    return [span for part in data.op().find(operations.InMemoryTable) for span in spans_of(part.data.obj)]


_OF_LIBRARY = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow, "ibis": _of_ibis}
