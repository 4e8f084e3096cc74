"""The columns of a dataframe of any library that narwhals knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tisat.errors import SeriesError
from tisat.io.columns import Roles
from tisat.io.files import Columns
from tisat.io.pandas_index import index_times, refuse_levels
from tisat.io.pandas_index import named_columns as named_columns
from tisat.io.time_columns import arrow_times
from tisat.io.timestamps import Times, read_times
from tisat.utils.types import Array
from tisat.utils.validation import check_labels


def frame_columns(
    table: Any, *, time: str | None, label: str | None, name: str, channels: Sequence[str] | None, drop: Sequence[str]
) -> Columns:
    """Values, times and labels of a dataframe; a pandas index that holds times is the time, else the only column of dates."""
    import narwhals as nw

    refuse_levels(table)
    frame = nw.from_native(named_columns(table), eager_only=True)
    index = nw.maybe_get_index(frame)
    roles = Roles(list(frame.columns), time, label, channels, drop)
    clock = index_times(index) if roles.time is None else None
    dated = [column for column in roles.channels if frame.get_column(column).dtype == nw.Datetime]
    if dated and roles.time is None and clock is None:
        if len(dated) > 1:
            raise SeriesError(
                f"The time of a table must be one column. Got {' and '.join(map(repr, dated))}. Name it: "
                f"tisat.Series.from_table(table, time={dated[0]!r}, drop={dated[1:]!r})."
            )
        roles = Roles(list(frame.columns), dated[0], label, channels, drop)
    values = np.empty((len(frame), len(roles.channels)))
    for c, column in enumerate(roles.channels):
        values[:, c] = _numbers(frame.get_column(column), column)
    times: Any = clock
    if roles.time is not None:
        stamps = frame.get_column(roles.time)
        times = arrow_times(stamps.to_arrow(), name=roles.time) if stamps.dtype == nw.Datetime else stamps.to_numpy()
    labels = None
    if roles.label is not None:
        labels = check_labels(_numbers(frame.get_column(roles.label), roles.label), roles.label, f"table {name!r}")
    known = None if times is None else times if isinstance(times, Times) else read_times(times)
    return Columns(values, roles.channels, known, labels)


def _numbers(column: Any, name: str) -> Array:
    """A dataframe column as float64 with NaN for null."""
    if not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
        raise SeriesError(
            f"The column {name!r} of a table must hold numbers. Got {column.dtype} instead. "
            f"tisat.Series.from_table(table, drop=[{name!r}]) leaves it out."
        )
    import narwhals as nw

    return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
