"""The window of each event and the rows outside all windows.

The window of an event starts at its onset, lasts ``delta_max`` (both ends included), and is cut where the next event
begins or the series ends. ``delta_max`` counts rows, or is a duration where the series carries timestamps; then
sampling may be irregular. This module does not know scores, alarms or thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tisat.errors import InputError, ParameterError
from tisat.events import Events, events_from_labels
from tisat.io.durations import Duration, nanoseconds_of
from tisat.io.timestamps import read_times
from tisat.utils.types import Array, Flags, Integers, Labels, Scores, Stamps
from tisat.utils.validation import check_labels, check_same_length, check_vector

Delay: TypeAlias = int | Duration

LONGEST = 2**61  # rows: sums of two stay within 64 bits


def parse_duration(duration: Duration, *, name: str, whose: str) -> int:
    """A duration in whole nanoseconds.

    Examples
    --------
    >>> parse_duration("10 minutes", name="delta_max", whose="spd_score") == 600 * 10**9
    True
    """
    must = "an integer >= 1 (rows) or a duration such as '10min'"
    return nanoseconds_of(duration, name=name, whose=whose, must=must)


def _ticks(timestamps: Stamps, length: int, whose: str) -> Integers:
    """Nanoseconds since the first timestamp; dates, or numbers in seconds.

    Strictly increasing.
    """
    stamps = np.asarray(timestamps)
    if stamps.shape != (length,):
        raise InputError(
            f"The 'timestamps' argument of {whose} must have one entry for each of the {length} rows. Got shape {stamps.shape} instead."
        )
    if stamps.dtype.kind in "OUS":
        try:
            stamps = read_times(stamps).values
        except InputError as error:
            raise InputError(f"The 'timestamps' argument of {whose} must hold dates or seconds. {error}") from None
    if stamps.dtype.kind == "M":
        if np.isnat(stamps).any():
            raise InputError(f"The 'timestamps' argument of {whose} must hold only known dates. Got NaT instead.")
        ticks = (stamps - stamps[0]).astype("timedelta64[ns]").astype(np.int64) if length else np.empty(0, np.int64)
    else:
        seconds = check_vector(stamps, "timestamps", whose)
        if np.isnan(seconds).any():
            raise InputError(f"The 'timestamps' argument of {whose} must hold only known times. Got NaN instead.")
        ticks = np.round((seconds - seconds[:1]) * 1e9).astype(np.int64)
    if (np.diff(ticks) <= 0).any():
        row = int(np.argmax(np.diff(ticks) <= 0)) + 1
        raise InputError(
            f"The 'timestamps' argument of {whose} must strictly increase. Got a step back or a repeat at row {row} instead."
        )
    return ticks


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of one labelled series: all that the counting needs to know about its labels.

    Made by :func:`windows_of`. Delays are integers: rows, or nanoseconds where ``delta_max`` is a duration.
    """

    events: Events  # (n, 2), half-open
    stops: Integers  # (n,), where each window ends, exclusive
    outside: Flags  # (T,), neither labelled nor in any window
    delta_max: int  # the delay of a missed event
    stride: int  # a lasting alarm is raised again after so many rows; 0 where sampling is irregular
    ticks: Integers | None  # (T,), nanoseconds since the first row; None without timestamps
    in_time: bool  # whether delta_max and delays are nanoseconds rather than rows

    def __len__(self) -> int:
        return len(self.outside)

    @property
    def unit(self) -> float:
        """Divisor of a delay for display: 1 for rows, 1e9 for seconds."""
        return 1e9 if self.in_time else 1.0

    @property
    def clock(self) -> Integers:
        """Time of each row (T,): its number, or nanoseconds since the first."""
        return self.ticks if self.in_time and self.ticks is not None else np.arange(len(self), dtype=np.int64)

    @cached_property
    def inside(self) -> Flags:
        """Which rows lie in a window, shape (T,)."""
        mask = np.zeros(len(self), dtype=np.bool_)
        for (start, _), stop in zip(self.events, self.stops, strict=True):
            mask[start:stop] = True
        return mask

    @cached_property
    def following(self) -> Integers:
        """For each row, the first one at least ``delta_max`` later (T where there is none)."""
        clock = self.clock
        return np.searchsorted(clock, clock + self.delta_max, side="left").astype(np.int64)

    def delay(self, events: Integers, time_steps: Integers) -> Integers:
        """How long after the onset of ``events`` (numbers) the ``time_steps`` are."""
        onsets = self.events[events, 0]
        clock = self.ticks if self.in_time and self.ticks is not None else None
        return np.asarray(time_steps - onsets if clock is None else clock[time_steps] - clock[onsets], dtype=np.int64)


def windows_of(
    y_true: Labels, delta_max: Delay, *, timestamps: Stamps = None, name: str = "y_true", whose: str = "windows_of"
) -> Windows:
    """The windows of one series.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,)
    delta_max : int or duration
        The longest tolerable delay in rows, or a duration (``"10min"``, ``timedelta``, ``timedelta64``).
    timestamps : array of shape (T,), optional
        Dates, or numbers in seconds; needed by a duration.

    Examples
    --------
    >>> windows = windows_of([0, 1, 1, 1, 1, 0, 1, 0], 2)
    >>> windows.stops.tolist()  # the first window holds delays 0, 1, 2; the second is cut by the end
    [4, 8]
    >>> windows.outside.astype(int).tolist()
    [1, 0, 0, 0, 0, 1, 0, 0]
    """
    labels = check_labels(y_true, name, whose)
    length = len(labels)
    events = events_from_labels(labels)
    onsets = events[:, 0]
    ends = np.append(onsets[1:], length)
    ticks = None if timestamps is None else _ticks(timestamps, length, whose)
    in_time = isinstance(delta_max, str | timedelta | np.timedelta64)
    if isinstance(delta_max, str | timedelta | np.timedelta64):
        delta = parse_duration(delta_max, name="delta_max", whose=whose)
        if ticks is None:
            raise ParameterError.about(
                "delta_max",
                f"must be an integer >= 1 where there are no timestamps. Got {delta_max!r} instead.",
                whose=whose,
            )
        steps = np.diff(ticks)
        regular = length < 2 or bool((steps == steps[0]).all())
        period = int(steps[0]) if length > 1 else delta
        stride = -(-delta // period) if regular else 0
        reach = np.searchsorted(ticks, ticks[onsets] + delta, side="right") if len(onsets) else onsets
    else:
        if (
            isinstance(delta_max, bool | np.bool_)
            or not isinstance(delta_max, int | np.integer)
            or not 1 <= delta_max <= LONGEST
        ):
            raise ParameterError.about(
                "delta_max",
                f"must be an integer >= 1 (rows) or a duration such as '10min'. Got {delta_max!r} instead.",
                whose=whose,
            )
        delta = stride = int(delta_max)
        reach = onsets + min(delta, length) + 1
    stops = np.minimum(reach, ends).astype(np.int64)
    outside = np.ones(length, dtype=np.bool_)
    for start, stop in zip(onsets.tolist(), np.maximum(stops, events[:, 1]).tolist(), strict=True):
        outside[start:stop] = False
    return Windows(events, stops, outside, delta, stride, ticks, in_time)


def _is_many(value: object) -> bool:
    """Whether ``value`` is a list of series rather than one series."""
    if not isinstance(value, list | tuple):
        return False
    return len(value) > 0 and all(np.ndim(item) > 0 for item in value)


def series_list(value: Any, *, like: Sequence[Any] | None = None, name: str, whose: str) -> list[Any]:
    """One series or a list of them, as a list; as many as in ``like``."""
    many = list(value) if _is_many(value) else [value]
    if like is not None and len(many) != len(like):
        raise InputError(
            f"The {name!r} argument of {whose} must hold as many series as the labels, {len(like)}. Got {len(many)} instead."
        )
    return many


def all_stamps(timestamps: Stamps, labels: Sequence[object], *, whose: str) -> list[Any]:
    """The timestamps of each series; None for each where there are none."""
    if timestamps is None:
        return [None] * len(labels)
    return series_list(timestamps, like=labels, name="timestamps", whose=whose)


def all_windows(y_true: Labels, delta_max: Delay, *, timestamps: Stamps = None, whose: str) -> list[Windows]:
    """The windows of one series or of each in a list."""
    labels = series_list(y_true, name="y_true", whose=whose)
    stamps = all_stamps(timestamps, labels, whose=whose)
    return [windows_of(y, delta_max, timestamps=t, whose=whose) for y, t in zip(labels, stamps, strict=True)]


def all_scores(y_score: Scores, like: Sequence[Sized], *, whose: str) -> list[Array]:
    """The scores of each series, as long as its labels or windows.

    At least one of them is a number.
    """
    scores = [check_vector(s, "y_score", whose) for s in series_list(y_score, like=like, name="y_score", whose=whose)]
    for one, labels in zip(scores, like, strict=True):
        check_same_length(labels, one, ("y_true", "y_score"), whose)
    if sum(map(len, scores)) and all(np.isnan(one).all() for one in scores):
        raise InputError(f"The 'y_score' argument of {whose} must hold at least one number. Got only NaN instead.")
    return scores
