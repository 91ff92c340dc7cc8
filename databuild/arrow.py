"""Numbers between Arrow and numpy, without pandas; and what Arrow raises.

`pa.array(ndarray)` and `column.to_numpy()` would do, but where pandas is installed they import it first, which takes longer
than a small build.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: What pyarrow raises for a damaged file, or for a value that Python cannot hold.
UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError)


def first_line(error: BaseException) -> str:
    """What an error says, in one line; its kind if it says nothing."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def array_of(values: npt.NDArray[Any]) -> pa.Array:
    """The numbers as an Arrow array."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def column_values(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """The numbers of a column without nulls; truth values as 0 and 1."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    dtype = array.type.to_pandas_dtype()
    if len(array) == 0:
        return np.zeros(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]
