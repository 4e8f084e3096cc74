"""The index of a pandas table: the time, plain row numbers, or a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tisat.errors import SeriesError
from tisat.io.columns import TIME_NAMES
from tisat.io.time_columns import arrow_times, read_time_columns
from tisat.io.timestamps import Times, epoch_unit, read_times


def named_columns(table: Any) -> Any:
    """The table with a name for every column; refused where two are called the same."""
    columns = getattr(table, "columns", None) if hasattr(table, "set_axis") else None  # a lazy frame would warn
    if columns is None or not hasattr(columns, "is_unique"):
        return table
    names = [f"column {c}" if _nameless(name) else name for c, name in enumerate(columns)]
    names_used: set[str] = set()
    for name in names:
        if str(name) in names_used:
            raise SeriesError(f"The columns of a table must have distinct names. Got {name!r} twice.")
        names_used.add(str(name))
    return table if names == list(columns) else table.set_axis(names, axis=1)


def _nameless(name: object) -> bool:
    return name is None or name != name or (isinstance(name, str) and not name.strip())


def refuse_levels(table: Any) -> None:
    """Refuse an index of several levels, with what to type."""
    index: Any = getattr(table, "index", None)
    if getattr(index, "nlevels", 1) > 1:
        levels: list[Any] = [place if _nameless(name) else name for place, name in enumerate(index.names)]
        first = next((name for name in levels if str(name).lower() not in TIME_NAMES), levels[0])
        in_a_file = f"; in a file: entity={first!r}" if isinstance(first, str) else ""
        raise SeriesError(
            f"The index of a table must have one level. Got a MultiIndex ({', '.join(map(str, levels))}). One series for each "
            f"{first}: [part.droplevel({first!r}) for _, part in table.groupby(level={first!r})]{in_a_file}."
        )


def index_times(index: Any) -> Times | None:
    """The times that an index holds; None where it only counts rows; refused where it is neither.

    Parameters
    ----------
    index : pandas index, or None
        Of dates, periods, time differences, text, objects or numbers. Numbers are times where the index is called like one, or
        where they are as large as a date since 1970.
    """
    if index is None or not len(index):
        return None
    name = "" if index.name is None else str(index.name)
    called = name.strip().lower() in TIME_NAMES
    kind = str(index.dtype)
    if kind == "category":
        return index_times(index.astype(index.categories.dtype))
    if kind.startswith("period"):
        index = index.to_timestamp()
    if str(index.dtype).startswith("datetime64"):
        import narwhals as nw

        dates: Any = nw.from_native(index.to_series(), series_only=True)
        return arrow_times(dates.to_arrow())
    if kind.startswith("timedelta"):
        return Times(np.asarray(index.total_seconds(), dtype=np.float64))
    values = index.to_numpy()
    if values.dtype.kind in "iuf" and not called:
        first = float(values[0])
        if np.isfinite(first) and epoch_unit(first) is not None:
            return read_times(values, name=name or "index")
        if values.dtype.kind != "f":
            return None
    elif values.dtype.kind in "iuf":
        return read_times(values, name=name)
    try:
        if all(isinstance(value, str) for value in values):
            import pyarrow as pa

            return read_time_columns([pa.chunked_array([pa.array(values.tolist(), pa.string())])], [name or "index"])[0]
        if values.dtype.kind == "O":
            return read_times(values, name=name or "index")
    except SeriesError as error:
        if called:
            raise SeriesError(f"The index {name!r} of a table must be the time. {error}") from None
    raise SeriesError(
        f"The index of a table must be the time, or plain row numbers. Got {str(values[0])[:40]!r} in {name or 'an index without a name'!r}. "
        "Leave it out: table.reset_index(drop=True); if it is the time: table.rename_axis('time')."
    )
