"""The columns of a dataframe of any library that narwhals knows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from tisat.errors import SeriesError
from tisat.io.columns import Roles, label_flags
from tisat.io.files import ENTITY, Columns
from tisat.io.missing_values import is_number
from tisat.io.pandas_index import index_times, refuse_levels
from tisat.io.pandas_index import named_columns as named_columns
from tisat.io.time_columns import arrow_times
from tisat.io.timestamps import Times, read_time, read_times
from tisat.utils.types import Array

LOOKED_AT = 1000  # cells that tell whether a column of text holds numbers


def frame_columns(
    table: Any, *, time: str | None, label: str | None, name: str, channels: Sequence[str] | None, drop: Sequence[str]
) -> Columns:
    """Values, times and labels of a dataframe; a pandas index that holds times is the time, else the only column of dates."""
    import narwhals as nw

    refuse_levels(table)
    frame = nw.from_native(named_columns(table), eager_only=True)
    columns = list(frame.columns)
    kinds = {column: frame.get_column(column).dtype for column in columns}
    words = [column for column in columns if not kinds[column].is_numeric()]
    roles = Roles(columns, time, label, channels, drop, dated=words)
    if len(roles.times) == 2:
        day, clock_time = roles.times
        raise SeriesError(
            f"The time of a table must be one column. Got {time!r} instead. Join them: "
            f"table['time'] = pd.to_datetime(table[{day!r}] + ' ' + table[{clock_time!r}]), and drop={[day, clock_time]!r}."
        )
    clock = _index_clock(nw.maybe_get_index(frame), needed=roles.time is None) if time is None else None
    if roles.time is not None and clock is not None:
        if clock.values.dtype.kind == "M" or roles.time not in words:  # dates, or numbers beside numbers
            same = kinds[roles.time] == nw.Datetime and np.array_equal(
                _column_times(frame, roles.time).values, clock.values
            )
            said = f"the index was taken for the time, not the column {roles.time!r}{', which repeats it and was left out' if same else ''}"
            roles = Roles(columns, None, label, channels, [*drop, *([roles.time] if same else [])], clocked=True)
            roles.notes.insert(0, said)
        else:
            clock = None
    dated = [column for column in roles.channels if kinds[column] == nw.Datetime]
    if dated and roles.time is None and clock is None:
        if len(dated) > 1:
            raise SeriesError(
                f"The time of a table must be one column. Got {' and '.join(map(repr, dated))}. Name it: "
                f"tisat.Series.from_table(table, time={dated[0]!r}, drop={dated[1:]!r})."
            )
        roles = Roles(columns, dated[0], label, channels, drop)
        roles.notes.insert(0, f"the column {dated[0]!r} was taken for the time")
    values = np.empty((len(frame), len(roles.channels)))
    for c, column in enumerate(roles.channels):
        values[:, c] = _numbers(frame.get_column(column), column)
    times = clock if roles.time is None else _column_times(frame, roles.time)
    labels = None
    if roles.label is not None:
        labels = label_flags(_numbers(frame.get_column(roles.label), roles.label), roles.label, told=label is not None)
    return Columns(values, roles.channels, times, labels, notes=tuple(roles.notes))


def _index_clock(index: Any, *, needed: bool) -> Times | None:
    """The times of an index; an index that is no time is refused only where no column holds the time."""
    try:
        return index_times(index)
    except SeriesError:
        if needed:
            raise
        return None


def _column_times(frame: Any, name: str) -> Times:
    import narwhals as nw

    column = frame.get_column(name)
    return arrow_times(column.to_arrow(), name=name) if column.dtype == nw.Datetime else read_times(column.to_numpy())


def _numbers(column: Any, name: str) -> Array:
    """A dataframe column as float64 with NaN for null; objects that are all numbers are numbers."""
    import narwhals as nw

    if column.dtype == nw.Object:
        known = ~column.is_null().to_numpy()
        cells = column.to_numpy()[known]
        if all(isinstance(cell, Real | Decimal | np.bool_) for cell in cells):
            numbers = np.full(len(known), np.nan)
            numbers[known] = [float(cell) for cell in cells]
            return numbers
    if not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
        raise SeriesError(_no_numbers(column, name))
    return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _no_numbers(column: Any, name: str) -> str:
    """The sentence about a column that must hold numbers, with what to type."""
    import narwhals as nw

    pandas = column.implementation.is_pandas_like()
    drop, quoted = f"tisat.Series.from_table(table, drop=[{name!r}]) leaves it out", repr(name)
    split = f"table.partition_by({quoted}, include_key=False)"
    if pandas:
        split = f"[part.drop(columns={quoted}) for _, part in table.groupby({quoted})]"
    if str(name).lower() == ENTITY:
        return f"The column {name!r} says that the table holds several machines. Give one series for each: {split}."
    must = f"The column {name!r} of a table must hold numbers. Got {column.dtype} instead."
    if column.dtype in (nw.Datetime, nw.Date, nw.Duration):
        return f"{must} {drop}{'' if column.dtype == nw.Duration else f'; time={quoted} makes it the time'}."
    cells = [str(cell) for cell in column.drop_nulls().head(LOOKED_AT).to_list()]
    if cells and sum(map(is_number, cells)) > len(cells) / 2:
        way = (
            f"pd.to_numeric(table[{quoted}], errors='coerce')"
            if pandas
            else f"table[{quoted}].cast(float, strict=False)"
        )
        return f"{must} Text of numbers becomes numbers, and the rest missing, by {way}; {drop}."
    if cells and all(map(_is_date, cells)):
        return f"{must} Its text is dates: time={quoted} makes it the time; {drop}."
    return f"{must} {drop}; if it names the machine, give one series for each: {split}."


def _is_date(cell: str) -> bool:
    try:
        read_time(cell)
    except SeriesError:
        return False
    return True
