"""Faults and alarms on one line of time: found in green, missed in black, false alarms in red, each with its name.

It draws what it is given with matplotlib; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat._extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tisat.sequential.alarms import Alarms
    from tisat.series import Series

FOUND, MISSED, FALSE, INK = "#1e8449", "#111111", "#c0392b", "#3b4252"


@dataclass(frozen=True)
class Mark:
    """A fault that was found or missed, or a false alarm."""

    start: int
    stop: int  # half-open
    name: str
    colour: str  # FOUND, MISSED or FALSE


def draw_timeline(marks: Sequence[Mark], alarms: Alarms, series: Series, *, channels: Sequence[int]) -> Figure:
    """The named marks, some channels below them, and the statistic with its threshold at the foot."""
    figure_module = require("matplotlib.figure", whose="The report")
    heights = [1.9] + [1.0] * len(channels) + [1.2]
    figure = figure_module.Figure(figsize=(11.0, 1.05 * sum(heights) + 0.4), layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    times = np.arange(len(series)) if series.timestamps is None else series.timestamps
    _names(axes[0], marks, times)
    for axis, channel in zip(axes[1:], channels, strict=False):
        axis.plot(times, series.values[:, channel], color=INK, linewidth=0.6)
        _label(axis, series.channels[channel])
    axes[-1].plot(times, alarms.statistic, color=INK, linewidth=0.8)
    axes[-1].axhline(alarms.threshold, color=FALSE, linewidth=0.9, linestyle="--")
    axes[-1].annotate(
        "threshold", (times[0], alarms.threshold), xytext=(4, 3), textcoords="offset points", color=FALSE, fontsize=8
    )
    _label(axes[-1], "statistic")
    for axis in axes[1:]:
        for mark in marks:
            axis.axvspan(times[mark.start], _end(mark, times), color=mark.colour, alpha=0.18, linewidth=0)
        axis.margins(x=0)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure  # type: ignore[no-any-return]


def _end(mark: Mark, times: Any) -> Any:
    return times[min(max(mark.stop, mark.start + 1), len(times) - 1)]


def _label(axis: Any, name: str) -> None:
    axis.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    axis.tick_params(labelsize=8)


def _names(axis: Any, marks: Sequence[Mark], times: Any) -> None:
    """One lane for faults and one for false alarms; names that would meet stand on different heights."""
    lanes = {FOUND: 0.0, MISSED: 0.0, FALSE: -1.6}
    free: dict[float, list[float]] = {}  # by lane: where the last name of each height ends, as a share of the width
    length = len(times)
    for mark in sorted(marks, key=lambda one: one.start):
        lane = lanes[mark.colour]
        axis.fill_between(
            [times[mark.start], _end(mark, times)], lane - 0.12, lane + 0.12, color=mark.colour, linewidth=1.0
        )
        begins, width = mark.start / length, 0.0075 * len(mark.name) + 0.01
        ends = free.setdefault(lane, [-1.0, -1.0, -1.0])
        height = next((h for h, last in enumerate(ends) if last <= begins), int(np.argmin(ends)))
        ends[height] = begins + width
        right = begins + width > 1.0
        axis.annotate(
            mark.name,
            (times[mark.start], lane + 0.16),
            xytext=(0, 1 + 10 * height),
            textcoords="offset points",
            color=mark.colour,
            fontsize=8,
            ha="right" if right else "left",
        )
    axis.set_ylim(-1.9, 1.35)
    axis.set_yticks([0.0, -1.6], ["faults", "false alarms"], fontsize=9)
    axis.tick_params(length=0, labelbottom=False)
    for side in ("top", "right", "left", "bottom"):
        axis.spines[side].set_visible(False)
