"""Pictures one can zoom into, as plain values: panels that share an axis, a lane of named marks, curves over their own places.

A :class:`Group` becomes JSON inside a page and is drawn by ``static/charts.js`` with uPlot. Nothing is computed here but fewer points.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat.utils.types import Array, Integers, JsonDict

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarms
    from tisat.series import Series

Rows = Integers

MOST_POINTS = 20_000  # of one curve; beyond it each stretch of rows is drawn from its least to its greatest value


@dataclass(frozen=True)
class Mark:
    """A stretch of time with a name: a fault found or missed, a false alarm, an alarm, a labelled fault."""

    start: float  # on the axis
    stop: float
    kind: str  # found, missed, false, true (an alarm during a fault), alarm or fault: the colour
    name: str
    lane: str = ""  # where it stands in the timeline
    said: str = ""  # shown when one points at it


@dataclass(frozen=True)
class Group:
    """Panels below each other that move together.

    ``panels`` are documents made by :func:`panel`, :func:`lanes` and :func:`curves`.
    """

    x: Sequence[float | None]
    panels: Sequence[JsonDict]
    marks: Sequence[Mark] = ()
    clock: bool = False
    axis: JsonDict = field(default_factory=dict)  # label, log, reverse, ticks
    caption: str = ""
    switches: bool = True  # a button for each panel, which shows it and hides it
    legend: Sequence[str] = ()  # kinds of marks explained above it

    def document(self) -> JsonDict:
        """Plain values for the script."""
        return {
            "x": list(self.x),
            "panels": list(self.panels),
            "marks": [vars(mark) for mark in self.marks],
            "clock": self.clock,
            "axis": self.axis,
            "switches": self.switches,
        }


def time_axis(series: Series) -> tuple[Array, bool, str]:
    """Places ``(T,)`` on the axis, whether they are seconds of a clock, and what must be said about it.

    Dates are drawn as they were written: at the offset of the first row, all of them.
    """
    stamps = series.timestamps
    if stamps is None:
        return np.arange(len(series), dtype=np.float64), False, ""
    if stamps.dtype.kind != "M":
        return np.asarray(stamps, dtype=np.float64), False, ""
    seconds = stamps.astype("datetime64[ns]").astype(np.int64) / 1e9
    if series.offsets is None:
        return seconds, True, ""
    minutes = int(series.offsets[0])
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    changed = " throughout, though clocks were changed" if (series.offsets != minutes).any() else ""
    return seconds + 60.0 * minutes, True, f"The pictures show times at {sign}{hours:02d}:{rest:02d}{changed}."


def span(x: Array, start: int, stop: int | None) -> tuple[float, float]:
    """Rows from ``start`` to before ``stop`` (None: to the end) as places on the axis."""
    last = len(x) - 1
    return float(x[min(start, last)]), float(x[last if stop is None else min(stop, last)])


def thinned(length: int, *, most: int = MOST_POINTS) -> Rows | None:
    """Rows ``(n, 2)`` at which stretches of a long series are drawn.

    None where every row is.
    """
    if length <= most:
        return None
    edges = np.linspace(0, length, most // 2 + 1).astype(np.int64)
    return np.stack([edges[:-1], (edges[:-1] + edges[1:]) // 2], axis=1)


def rows_drawn(length: int, *, most: int = MOST_POINTS) -> Rows | None:
    """The rows ``(n,)`` at which what was expected is drawn; None where at every row."""
    rows = thinned(length, most=most)
    return None if rows is None else rows.ravel()


def places(x: Array, rows: Rows | None) -> list[float | None]:
    """The axis of a group whose curves were thinned alike."""
    return numbers(x if rows is None else x[rows.ravel()], digits=15)


def numbers(values: Any, *, digits: int = 6) -> list[float | None]:
    """Values as JSON can hold them; what is not known is nothing."""
    rounded = f"%.{digits}g"
    return [
        float(rounded % value) if isfinite(value) else None for value in np.asarray(values, dtype=np.float64).tolist()
    ]


def line(label: str, look: str, values: Any, rows: Rows | None = None, **more: Any) -> JsonDict:
    """One curve of a panel.

    ``look`` is seen, expected, edge, limit, baseline, or the number of a colour of curves.
    """
    values = np.asarray(values, dtype=np.float64)
    if rows is not None:
        values = _extremes(values, rows) if look not in ("edge", "expected") else values[rows.ravel()]
    return {"label": label, "look": look, "values": numbers(values), **more}


def _extremes(values: Array, rows: Rows) -> Array:
    """The least and the greatest value of each stretch, in the order of time as near as two points can say it."""
    low = np.fmin.reduceat(values, rows[:, 0])
    high = np.fmax.reduceat(values, rows[:, 0])
    return np.stack([low, high], axis=1).ravel()


def panel(
    name: str,
    lines: Sequence[JsonDict],
    *,
    height: int = 190,
    steep: float | None = None,
    band: tuple[int, int] | None = None,
    hidden: bool = False,
    **more: Any,
) -> JsonDict:
    """Curves over the axis of the group.

    ``steep`` bends the scale above that value, ``band`` fills between two curves (from 1).
    """
    return {
        "name": name, "height": height, "steep": steep, "lines": list(lines), "band": None if band is None else list(band),
        "hidden": hidden, "kind": "lines", **more,
    }  # fmt: skip


def lanes(name: str, names: Sequence[str], *, height: int | None = None) -> JsonDict:
    """The timeline: the marks of the group in lanes, each with its name."""
    return panel(name, (), height=height or 62 + 62 * len(names), lanes=list(names), kind="lanes")


def channel_panel(
    name: str, values: Any, band: tuple[Array, Array] | None, rows: Rows | None, *, hidden: bool = False
) -> JsonDict:
    """A channel with what was expected of it and two usual spreads around that."""
    traces = []
    if band is not None:
        middle, spread = band
        traces = [
            line("up to", "edge", middle + 2 * spread, rows),
            line("from", "edge", middle - 2 * spread, rows),
            line("expected", "expected", middle, rows),
        ]
    traces.append(line("seen", "seen", values, rows))
    return panel(name, traces, band=None if band is None else (1, 2), hidden=hidden)


def evidence_panel(
    statistic: Array, threshold: float, rows: Rows | None, *, name: str = "Evidence against the threshold"
) -> JsonDict:
    """The statistic and the threshold at which it raises an alarm.

    A steep one is bent above the threshold.
    """
    known = statistic[np.isfinite(statistic)]
    steep = len(known) > 0 and float(known.max()) > 20 * threshold > 0
    level = np.full(len(statistic), threshold)
    return panel(
        name,
        [line("evidence", "seen", statistic, rows), line("threshold", "limit", level, rows)],
        height=170,
        steep=threshold if steep else None,
    )


def alarm_chart(
    series: Series,
    alarms: Alarms,
    expected: tuple[Array, Array] | None,
    *,
    channels: Sequence[int],
    shown: Sequence[int],
    tracks: Sequence[str],
    marks: Sequence[Mark],
    most: int = MOST_POINTS,
    **more: Any,
) -> Group:
    """A timeline of marks, channels with what was expected of them (those that are not ``shown`` wait for their button), the evidence."""
    x, clock, _ = time_axis(series)
    rows = thinned(len(series), most=most)
    panels = [lanes("What happened when", tracks)] if tracks else []
    for c in channels:
        band = None if expected is None else (expected[0][:, c], expected[1][:, c])
        panels.append(channel_panel(series.channels[c], series.values[:, c], band, rows, hidden=c not in shown))
    panels.append(evidence_panel(alarms.statistic, alarms.threshold, rows))
    return Group(places(x, rows), panels, marks, clock, **more)


def curves(
    name: str, drawn: Sequence[tuple[str, str, Any, Any]], *, look: str = "", height: int = 320, **more: Any
) -> JsonDict:
    """Curves over places of their own: (label, look, x, y).

    ``look`` of the panel is steps, points or nothing (lines).
    """
    lines = [
        {"label": label, "look": colour, "x": numbers(x), "values": numbers(y)} for label, colour, x, y in drawn if len(x)
    ]  # fmt: skip
    return panel(name, lines, height=height, drawn=look, **more)


def scatter(
    name: str,
    drawn: Sequence[tuple[str, str, Sequence[tuple[float, float, str]]]],
    *,
    height: int = 380,
    **more: Any,
) -> JsonDict:
    """Points with names: (label, look, points as x, y, name).

    Two at one place stand side by side by a hair, so that both are drawn.
    """
    lines = []
    for label, colour, points in drawn:
        placed: list[tuple[float, float, str]] = []
        for x, y, said in sorted(points):
            beside = float(np.nextafter(placed[-1][0], np.inf)) if placed and x <= placed[-1][0] else x
            placed.append((beside, y, said))
        if placed:
            lines.append(
                {
                    "label": label,
                    "look": colour,
                    "x": [p[0] for p in placed],
                    "values": numbers([p[1] for p in placed]),
                    "names": [p[2] for p in placed],
                }
            )
    return panel(name, lines, height=height, drawn="points", **more)


def safe_json(document: object) -> str:
    """JSON in which no tag, comment or line separator can begin."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
