"""Arrow columns as numpy arrays, without pandas: arrow's own ``to_numpy`` imports it, which takes longer than most files."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(column: Any) -> Any:
    """The values of an arrow array or chunked array of numbers or times, as numpy has them; null is NaN or NaT.

    Examples
    --------
    >>> import pyarrow as pa
    >>> plain(pa.array([1.0, None])).tolist(), plain(pa.array([0, None], pa.timestamp("s"))).tolist()
    ([1.0, nan], [datetime.datetime(1970, 1, 1, 0, 0), None])
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    times = pa.types.is_timestamp(column.type)
    if times:
        unit, column = column.type.unit, column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(
            np.iinfo(np.int64).min if times else float("nan")
        )  # imports pyarrow.compute, which takes a while
    values = np.from_dlpack(column)
    return values.view(f"datetime64[{unit}]") if times else values
