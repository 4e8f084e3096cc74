"""Columns over time as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tisat.utils.extras import require
from tisat.utils.palette import FAULT, INK
from tisat.utils.types import AnyArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_channels(
    times: AnyArray,
    values: AnyArray,
    channels: Sequence[str],
    *,
    title: str,
    spans: Iterable[Sequence[int]] = (),
    most: int = 12,
) -> Figure:
    """A matplotlib figure of the first channels; ``spans`` of rows are grey."""
    figure_module = require("matplotlib.figure", whose="A picture of a series")
    count = min(len(channels), most)
    figure: Figure = figure_module.Figure(figsize=(9.0, 0.9 * count + 0.8), layout="constrained")
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    for c, axis in enumerate(axes):
        axis.plot(times, values[:, c], color=INK, linewidth=0.6)
        for start, stop in spans:
            axis.axvspan(times[start], times[min(stop, len(times) - 1)], color=FAULT, alpha=0.3, linewidth=0)
        axis.set_ylabel(channels[c], rotation=0, ha="right", va="center", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.margins(x=0)
    left = len(channels) - count
    figure.suptitle(f"{title} ({left} more channels)" if left else title, fontsize=9)
    return figure
