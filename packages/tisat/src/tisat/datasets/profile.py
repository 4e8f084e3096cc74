"""A first look at a series: its clock, its gaps, and of each channel what it is like and what will be done with it.

Nothing is changed here, and no detector is known: it says what a person should know before fitting one.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from tisat.events import events_from_labels
from tisat.gap_filling import MAX_GAP
from tisat.io.channel_plot import draw_channels
from tisat.io.counters import is_counter
from tisat.series import SeriesLike, as_series
from tisat.utils.types import Array, Flags, JsonDict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 8  # distinct values of a channel that is a state
STUCK = 0.05  # share of rows in one run of equal values beyond which a measurement is stuck
COPIED = 60  # rows in a piece that are the same as earlier ones, from which on it is said
LAGS = 20  # that are tried
COUNTS = 0.999  # share of steps that do not go down in a counter


@dataclass(frozen=True)
class ChannelLook:
    """Profile of one channel."""

    name: str
    least: float
    median: float
    most: float
    missing: float  # share of rows
    longest_gap: int  # rows without a value, in one piece
    longest_run: int  # rows with one and the same value, in one piece
    distinct: int  # values, counted up to a limit
    kind: str  # measurement, on/off, states, constant, stuck, counter, empty
    advice: str  # what is done with it, and what one may do about it


@dataclass(frozen=True)
class Look:
    """Profile of a series.

    Examples
    --------
    >>> from tisat.datasets.synthetic import make_pump
    >>> found = look(make_pump(n_train=1440, valve=True).train)
    >>> found.rows, found.period, [one.kind for one in found.channels][-2:]
    (1440, 60.0, ['measurement', 'on/off'])
    """

    name: str
    rows: int
    first: str | float | None
    last: str | float | None
    period: float | None  # seconds
    gaps: int  # jumps in time
    longest_gap: float  # seconds
    rows_missing: int  # rows that a regular clock would have had
    rows_empty: int  # without a value in any channel
    duplicated_rows: int  # equal to the row before them in every channel
    copied: (
        tuple[int, int, int] | None
    )  # the longest stretch that is an earlier one again: its rows, its first row, that of the earlier
    events: int | None
    channels: tuple[ChannelLook, ...]
    notes: tuple[str, ...]

    @property
    def usable(self) -> int:
        """The rows with a value in at least one channel."""
        return self.rows - self.rows_empty

    @property
    def empty(self) -> list[str]:
        """The channels without a value: no detector can be fitted with them."""
        return [one.name for one in self.channels if one.kind == "empty"]

    def to_json(self) -> JsonDict:
        """Plain values."""
        return asdict(self)


def look(data: SeriesLike) -> Look:
    """Look at a series, an array, a dataframe or a file.

    Parameters
    ----------
    data : anything :func:`tisat.series.as_series` takes
    """
    series = as_series(data, whose="look")
    values = np.asarray(series.values, dtype=np.float64)
    steps = np.empty(0) if series.seconds is None else np.diff(series.seconds)
    period = series.period
    jumps = steps[series.gaps - 1] if len(series.gaps) else np.empty(0)
    lost = int(np.sum(np.round(jumps / period) - 1)) if period and len(jumps) else 0
    together = _standing_together(values)
    nothing: Flags = np.asarray(np.isnan(values).all(axis=1))
    repeated = np.all((values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1])), axis=1)
    return Look(
        name=series.name,
        rows=len(series),
        first=series.stamp(0),
        last=series.stamp(len(series) - 1),
        period=period,
        gaps=len(series.gaps),
        longest_gap=float(jumps.max(initial=0.0)),
        rows_missing=lost,
        rows_empty=int(nothing.sum()),
        duplicated_rows=int((repeated & ~nothing[1:]).sum()),
        copied=copied_stretch(values),
        events=None if series.labels is None else len(series.events),
        channels=tuple(_channel(name, values[:, c], together) for c, name in enumerate(series.channels)),
        notes=series.notes,
    )


def copied_stretch(values: Array) -> tuple[int, int, int] | None:
    """The longest stretch of rows ``(T, C)`` that is an earlier one again: how many rows, the first, that of the earlier.

    None where no stretch of COPIED rows is. A periodic series is no copy: its stretches overlap.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(500, 2))
    >>> rows[300:400] = rows[50:150]
    >>> copied_stretch(rows)
    (100, 300, 50)
    """
    words = np.ascontiguousarray(values).view(np.uint64)
    odd = np.random.default_rng(0).integers(0, 2**63, size=values.shape[1], dtype=np.uint64) * 2 + 1
    keys = (words * odd).sum(axis=1, dtype=np.uint64)  # alike for rows that are alike, to the bit
    order = np.argsort(keys, kind="stable")
    again = keys[order[1:]] == keys[order[:-1]]
    back = np.zeros(len(keys), dtype=np.int64)  # rows back to the last one that is the same; 0: there is none
    back[order[1:][again]] = (order[1:] - order[:-1])[again]
    runs = sorted(
        events_from_labels((back[1:] == back[:-1]) & (back[1:] > 0)).tolist(), key=lambda run: run[0] - run[1]
    )
    best: tuple[int, int, int] | None = None
    for lag in {int(back[start]) for start, stop in runs[:LAGS] if stop - start >= COPIED // 2}:
        for start, stop in events_from_labels(keys[lag:] == keys[:-lag]):
            length = int(stop - start)
            if COPIED <= length <= lag and (best is None or length > best[0]):
                best = length, int(start) + lag, int(start)
    return best


def _longest(mask: Flags) -> int:
    return int(np.diff(events_from_labels(mask)).max(initial=0))


def _standing_together(values: Array) -> Flags:
    """Whether most of the channels that measure something stand still from a row to the next ``(T - 1,)``: a plant that stands, no dead sensor."""
    measuring = [c for c in range(values.shape[1]) if len(np.unique(values[:, c])) > FEW]
    still = values[1:, measuring] == values[:-1, measuring]
    return np.asarray(2 * still.sum(axis=1) > len(measuring)) & (len(measuring) > 1)


def _comes_back(known: Array, run: int) -> bool:
    """Whether a channel stands at one value more than once, about as long as it ever does: at 0 every weekend."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(known) != 0) + 1, [len(known)]])
    at = known[edges[:-1]][2 * np.diff(edges) > run]
    return len(at) > len(np.unique(at))


def _channel(name: str, values: Array, together: Flags) -> ChannelLook:
    missing = np.isnan(values)
    values_known = values[~missing]
    if not len(values_known):
        advice = f"no values: leave it out with --drop {shlex.quote(name)}"
        return ChannelLook(name, np.nan, np.nan, np.nan, 1.0, len(values), 0, 0, "empty", advice)
    distinct = len(np.unique(values_known))
    run = _longest(np.diff(values_known) == 0) + 1
    kind, advice = _channel_kind(name, values_known, distinct, run)
    if kind == "stuck":
        alone = _longest((values[1:] == values[:-1]) & ~together) + 1
        if not _is_long(alone, len(values_known)):
            kind, advice = "measurement", f"kept; not stuck: it stands when the others do, for up to {run} rows"
        elif _comes_back(values_known, run):
            kind, advice = (
                "measurement",
                f"kept; not stuck: it stands at one value again and again, for up to {run} rows",
            )
    gap = _longest(missing)
    if gap > MAX_GAP:
        advice += f"; missing for up to {gap} rows: reported silent after {MAX_GAP}"
    elif gap:
        advice += f"; gaps of up to {gap} row{'s' * (gap != 1)} are filled with the last value"
    low, middle, high = (float(q) for q in np.quantile(values_known, (0.0, 0.5, 1.0)))
    return ChannelLook(name, low, middle, high, float(missing.mean()), gap, run, distinct, kind, advice)


def _is_long(run: int, rows: int) -> bool:
    return run > max(20, STUCK * rows)


def _channel_kind(name: str, known: Array, distinct: int, run: int) -> tuple[str, str]:
    steps = np.diff(known)
    if distinct == 1:
        return "constant", f"a change by a few % stands out; not wanted: --drop {shlex.quote(name)}"
    if distinct == 2:
        return "on/off", "kept; scored by how it switches"
    if distinct <= FEW and np.allclose(known, np.round(known)):
        return "states", "kept; a new state stands out"
    if is_counter(known):
        return "counter", f"its growth per row is used; else --no-counter {shlex.quote(name)}"
    if len(steps) >= 20 and np.mean(steps >= 0) >= COUNTS and known[-1] > known[0]:
        advice = f"kept as a level; if it counts: --counter {shlex.quote(name)} (use its growth) or --drop {shlex.quote(name)}"
        return "measurement", advice
    if _is_long(run, len(known)):
        return "stuck", f"the same value for up to {run} rows: if the sensor was dead, fit without them"
    return "measurement", "kept"


def draw_look(given: SeriesLike, *, most: int = 12) -> Figure:
    """Draw the first channels of a series, an array, a frame or a file over time, gaps in grey; a matplotlib figure."""
    series = as_series(given, whose="draw_look")
    times = np.arange(len(series)) if series.timestamps is None else series.timestamps
    gaps = [(at - 1, at) for at in series.gaps[:200]]
    return draw_channels(times, series.values, series.channels, title=series.name, spans=gaps, most=most)
