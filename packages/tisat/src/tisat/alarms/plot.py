"""Alarms as a picture: the contributing channels, the statistic with its threshold, alarms, onsets and labelled events.

It draws what it is given with matplotlib; it computes nothing.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from tisat.alarms.ongoing import count_words, rows_on
from tisat.errors import SeriesError
from tisat.events import events_from_labels
from tisat.io.columns import listed
from tisat.io.timestamps import say_offset
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.extras import require
from tisat.utils.palette import ALARM, EXPECTED, FAULT, INK, ONSET
from tisat.utils.types import AnyArray, Array
from tisat.utils.validation import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tisat.alarms.alarms import Alarms


def contributing(alarms: Alarms, series: Series, count: int) -> list[int]:
    """The first channel of each alarm, the strongest alarm's before the others', then the second of each, and so on.

    The first ones where alarms name none.
    """
    strongest = sorted(alarms, key=lambda alarm: -alarm.peak)
    ranked = [sorted(alarm.channels, key=alarm.channels.__getitem__, reverse=True) for alarm in strongest]
    places = {name: c for c, name in enumerate(series.channels)}
    named = [places[name] for names in zip_longest(*ranked) for name in names if name in places]
    return list(dict.fromkeys([*named, *places.values()]))[:count]


def series_of(alarms: Alarms, given: SeriesLike, *, whose: str) -> Series:
    """The series that alarms were raised on, whatever it was given as."""
    series = as_series(given, whose=whose)
    if len(series) != len(alarms.statistic):
        raise SeriesError(
            f"The series given to {whose} must be the one of the alarms, {len(alarms.statistic)} rows. Got {len(series)} rows instead."
        )
    return series


def draw(
    alarms: Alarms,
    given: SeriesLike | None = None,
    *,
    channels: int = 3,
    title: str = "",
    expected: tuple[Array, Array] | None = None,
) -> Figure:
    """A matplotlib figure.

    The series given adds its contributing channels, its time axis and, where labelled, its events.

    ``expected``, a pair of arrays (T, C), adds what was expected of each channel and two usual spreads around it.
    """
    figure_module = require("matplotlib.figure", whose="A picture of alarms")
    series = None if given is None else series_of(alarms, given, whose="Alarms.plot")
    count = check_integer(channels, "channels", "a picture of alarms", minimum=1)
    panels = [] if series is None else contributing(alarms, series, count)
    figure: Figure = figure_module.Figure(figsize=(9.0, 1.3 * len(panels) + 2.3), layout="constrained")
    heights = [1.0] * len(panels) + [1.6]
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    times = np.arange(len(alarms.statistic)) if series is None or series.timestamps is None else series.timestamps
    if series is not None and series.offsets is not None:  # as they were written
        minutes = np.unique(series.offsets)
        times = times + series.offsets.astype("timedelta64[m]")
        where = f"time at {say_offset(int(minutes[0])).replace('Z', 'UTC')}" if len(minutes) == 1 else "local time"
        axes[-1].set_xlabel(where, fontsize=8)
    for axis, channel in zip(axes, panels, strict=False):
        assert series is not None
        if expected is not None:
            middle, spread = (np.asarray(one)[:, channel] for one in expected)
            axis.fill_between(times, middle - 2 * spread, middle + 2 * spread, color=EXPECTED, alpha=0.3, linewidth=0)
            axis.plot(times, middle, color=EXPECTED, linewidth=0.6)
        axis.plot(times, series.values[:, channel], color=INK, linewidth=0.6)
        axis.set_ylabel(series.channels[channel], rotation=0, ha="right", va="center", fontsize=8)
        axis.tick_params(labelsize=7)
    _statistic(axes[-1], alarms, times)
    last = len(times) - 1
    for axis in axes:
        if series is not None and series.labels is not None:
            for start, stop in events_from_labels(series.labels):
                axis.axvspan(times[start], times[min(stop, last)], color=FAULT, alpha=0.25, linewidth=0)
        for alarm in alarms:
            axis.axvline(times[alarm.raised], color=ALARM, linewidth=0.8)
        axis.margins(x=0)
    title = title or (series.name if series is not None else "")
    head = f"{title}: {count_words(alarms)}, {alarms.calibration.rule} rule, budget {alarms.calibration.budget}"
    if series is not None and len(panels) < series.n_channels:
        left = listed([name for c, name in enumerate(series.channels) if c not in panels], most=3)
        head += f"\n{len(panels)} of {series.n_channels} channels, the strongest alarms' first; not drawn: {left} (channels={series.n_channels} draws all)"
    figure.suptitle(head.lstrip(": "), fontsize=9)
    return figure


def _statistic(axis: Axes, alarms: Alarms, times: AnyArray) -> None:
    axis.plot(times, alarms.statistic, color=INK, linewidth=0.7, label="statistic")
    axis.axhline(alarms.threshold, color=ALARM, linewidth=0.8, linestyle="--", label="threshold h")
    on = np.where(rows_on(alarms), alarms.threshold, np.nan)
    axis.plot(times, on, color=ALARM, linewidth=3.0, solid_capstyle="butt", label="alarm on")
    known = alarms.statistic[~np.isnan(alarms.statistic)]
    if len(known) and known.max() > 20 * alarms.threshold:
        axis.set_yscale("symlog", linthresh=max(alarms.threshold, 1e-12))
    if len(alarms):
        onsets = [times[alarm.onset] for alarm in alarms]
        axis.plot(
            onsets,
            np.zeros(len(onsets)),
            linestyle="none",
            marker="^",
            color=ONSET,
            markersize=5,
            label="onset estimate",
        )
    axis.set_ylabel("statistic", rotation=0, ha="right", va="center", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.legend(fontsize=7, loc="upper left", ncols=4, frameon=False)
