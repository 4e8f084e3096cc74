"""The local time of rows: what a clock on the wall beside the machine shows, in seconds since 1970."""

from __future__ import annotations

import numpy as np

from tisat.series import Series
from tisat.utils.types import Array


def local_seconds(series: Series) -> Array:
    """Local time of each row ``(T,)``, by the offsets its dates were written with; NaN where times are no dates.

    Examples
    --------
    >>> local_seconds(Series([1.0, 2.0], timestamps=["1970-01-02T00:00:00+01:00", "1970-01-02T00:01:00+01:00"])).tolist()
    [86400.0, 86460.0]
    """
    if series.timestamps is None or series.timestamps.dtype.kind != "M":
        return np.full(len(series), np.nan)
    seconds = series.timestamps.astype(np.int64).astype(np.float64) / 1e9
    return seconds if series.offsets is None else seconds + series.offsets.astype(np.float64) * 60.0
