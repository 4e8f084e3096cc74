"""What the values and the times of a series must be, and what to type where they are not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tisat.errors import SeriesError
from tisat.io.timestamps import Times
from tisat.utils.types import AnyArray, AnyFloats


def plain_array(data: Any) -> AnyArray:
    """An array from a tensor or anything else with ``__array__``, also with gradients, on a device or in half precision."""
    try:
        for step in ("detach", "cpu"):
            data = getattr(data, step)() if hasattr(data, step) else data
        return np.asarray(data)
    except (TypeError, RuntimeError, ValueError, BufferError):
        try:
            return np.asarray(data.float())  # numbers that numpy has no kind for, such as bfloat16
        except Exception:
            raise SeriesError(
                f"The values of a series must be an array of numbers. Got a {type(data).__qualname__} that numpy cannot read."
            ) from None


def check_values(values: object) -> AnyFloats:
    """Values as floats of shape (T, C); what is masked is missing."""
    if hasattr(values, "columns"):
        raise SeriesError(
            "The values of a Series must be an array. Got a table: Series.from_table(table) takes its names, times and labels."
        )
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)  # what is masked is missing
    array = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        if array.dtype.kind == "c":
            raise SeriesError(
                f"The values of a series must be real. Complex data not supported. Got dtype {array.dtype} instead."
            )
        if array.dtype.kind not in "biufO":
            raise SeriesError(
                f"The values of a series must be numbers. Got dtype {array.dtype} instead; dates go into 'timestamps', "
                "and text columns must be left out."
            )
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            why = " (a number beyond 1e308)" if isinstance(error, OverflowError) else ""
            raise SeriesError(
                f"The values of a series must be numbers. Got dtype {array.dtype}{why} instead."
            ) from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise SeriesError(
            f"The values of a series must have shape (T, C) with C >= 1. Got shape {array.shape} instead."
        )
    if array.shape[0] == 0:
        raise SeriesError(f"The values of a series must have at least one row. Got shape {array.shape} instead.")
    return array


def spread_of(values: AnyFloats) -> tuple[float, float, float, float]:
    """Least, median and most of a channel, and the share of its rows that are missing."""
    known = values[~np.isnan(values)]
    if not len(known):
        return (np.nan, np.nan, np.nan, 1.0)
    return (float(known.min()), float(np.median(known)), float(known.max()), 1.0 - len(known) / len(values))


def check_times(times: Times, length: int, *, file: bool = False) -> AnyArray:
    """Times that are known, strictly increase, and are one for each row; ``file``: they were read from one."""
    array = times.values
    if array.shape != (length,):
        raise SeriesError(
            f"The timestamps of a series must have one entry a row ({length}). Got shape {array.shape} instead."
        )
    unknown = np.isnat(array) if array.dtype.kind == "M" else ~np.isfinite(array)
    if unknown.any():
        raise SeriesError(
            f"The timestamps of a series must all be known. Got {array[np.argmax(unknown)]} at row {np.argmax(unknown)} instead."
        )
    late = np.flatnonzero(array[1:] <= array[:-1])
    if late.size:
        row = int(late[0]) + 1
        what = "a duplicate" if array[row] == array[row - 1] else "an earlier time"
        raise SeriesError(
            f"The timestamps of a series must strictly increase. Got {what}, {_moment(array[row])}, at row {row} instead. "
            f"{(_way_on_of_file if file else _way_on)(array, late, row, zoned=times.offsets is not None)}"
        )
    return array


def _moment(stamp: Any) -> str:
    """A time for people: no nanoseconds that are zero."""
    return re.sub(r"\.?0+$", "", str(stamp)) if isinstance(stamp, np.datetime64) and "." in str(stamp) else str(stamp)


def _clocks_went_back(array: AnyArray, late: AnyArray, row: int, *, zoned: bool) -> bool:
    """Whether times of no zone go back by about an hour, and seldom; of hourly rows a time comes twice at night."""
    hour = np.timedelta64(3600, "s")
    if array.dtype.kind != "M" or zoned or len(late) > 4:
        return False
    if array[row] == array[row - 1]:
        at_night = array[row] - array[row].astype("datetime64[D]") < 4 * hour
        return bool(at_night and np.median(np.diff(array).astype(np.int64)) == hour.astype("m8[ns]").astype(np.int64))
    return bool(hour * 0.5 <= array[row - 1] - array[row] < hour * 1.01)


def _way_on(array: AnyArray, late: AnyArray, row: int, *, zoned: bool) -> str:
    """What to type in Python about times that do not increase."""
    if _clocks_went_back(array, late, row, zoned=zoned):
        return "If clocks went back here, give times with their zone: frame.tz_localize('Europe/Berlin', ambiguous='infer')."
    if array[row] == array[row - 1]:
        return "Keep one row of each time: frame[~frame.index.duplicated()]; of several machines give one series each."
    return "If rows only came out of order, give frame.sort_index(); of several machines give one series each."


def _way_on_of_file(array: AnyArray, late: AnyArray, row: int, *, zoned: bool) -> str:
    """What to type about the times of a file that do not increase: at the command line, and in Python."""
    if _clocks_went_back(array, late, row, zoned=zoned):
        return (
            "If clocks went back here, give --timezone Europe/Berlin (Python: timezone=); "
            "else --sort and --dedup first, last or mean (Python: sort=True, dedup=)."
        )
    if array[row] == array[row - 1]:
        return "Give --dedup first, last or mean (Python: dedup=); in files of several machines --entity (entity=)."
    if array[row] in array[:row]:  # rows that came twice, as where two exports overlap
        return "Give --sort and --dedup first, last or mean (Python: sort=True, dedup=); in files of several machines --entity (entity=)."
    return "If rows only came out of order, give --sort (Python: sort=True); in files of several machines --entity (entity=)."
