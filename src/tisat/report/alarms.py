"""The alarms of one series as one page that can be mailed: the answer in words, what happened when, the channels to look at.

The page carries its script (uPlot), its style and its data inside, asks no network, and forbids itself to (a content security policy with
the hashes of its own scripts). Every text goes through ``escape``; data goes through JSON in which no tag can begin. It draws what it is given.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tisat._version import __version__
from tisat.events import events_from_labels
from tisat.report import static
from tisat.sequential.alarms import Alarm, Alarms, say_time
from tisat.sequential.picture import blamed

if TYPE_CHECKING:
    from tisat.series import Series

Array = npt.NDArray[np.float64]

MOST_POINTS = 20_000  # of one curve; beyond it each stretch of rows is drawn from its least to its greatest value
MOST_CHANNELS = 8
AROUND = 1.5  # lengths of an alarm shown before and after it when it is clicked


def alarm_page(
    alarms: Alarms,
    series: Series,
    *,
    expected: tuple[Array, Array] | None = None,
    channels: int = MOST_CHANNELS,
    command: str = "",
) -> str:
    """The page as text.

    Parameters
    ----------
    alarms : Alarms
    series : Series
        What they were raised on, with the channels of the model.
    expected : pair of arrays of shape (T, C), optional
        What the detector expected of each channel, and the usual spread: drawn as a band of two spreads.
    channels : int
        How many channels are drawn at most; those that alarms name come first.
    command : str
        Printed at the foot.
    """
    x, clock, said = _axis(series)
    rows = _thinned(len(series))
    charts = [_statistic(alarms, rows)]
    for c in _chosen(alarms, series, channels):
        band = None if expected is None else (expected[0][:, c], expected[1][:, c])
        charts.append(_channel(series.channels[c], np.asarray(series.values[:, c], dtype=np.float64), band, rows))
    document = {
        "clock": clock,
        "x": _numbers(x if rows is None else x[rows.ravel()], digits=15),
        "charts": charts,
        "alarms": [_span(x, one.raised, one.cleared) for one in alarms],
        "faults": [] if series.labels is None else [_span(x, start, stop) for start, stop in events_from_labels(series.labels)],
    }  # fmt: skip
    scripts = [static.read("uPlot.iife.min.js"), static.read("alarms.js")]
    policy = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    words = [f"<p class='answer'>{escape(answer(alarms, series))}</p>"]
    words += [f"<p class='soft'>{escape(line)}</p>" for line in _small_print(alarms, said, thinned=rows is not None)]
    return "\n".join(
        [
            "<!doctype html>",
            "<html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'; script-src {policy}; base-uri 'none'; form-action 'none'\">",
            f"<title>{escape(_title(alarms, series))}</title><style>{static.read('uPlot.min.css')}\n{static.read('alarms.css')}</style></head><body>",
            f"<h1>{escape(_title(alarms, series))}</h1>",
            *words,
            _table(alarms, x),
            "<h2>What happened</h2>",
            "<p class='soft'>Drag to zoom, double-click or <button id='all'>show everything</button> to go back. Red: an alarm was on, from the line on."
            " Blue: what was expected, with two usual spreads around it. Grey: labelled faults, where the file has labels.</p>",
            "<noscript><p>The pictures need a script. The table above has everything that was found.</p></noscript>",
            "<div id='charts'></div>",
            f"<footer>Written by tisat {escape(__version__)}{' with ' + escape(command) if command else ''}. Pictures: uPlot, MIT licence, Leon Sorokin.</footer>",
            f"<script type='application/json' id='data'>{_safe_json(document)}</script>",
            *(f"<script>{text}</script>" for text in scripts),
            "</body></html>",
        ]
    )


def answer(alarms: Alarms, series: Series) -> str:
    """The whole in one or two sentences."""
    if not len(alarms):
        return f"No alarm in {_extent(series)}."
    strongest = max(alarms, key=lambda one: one.peak)
    on = [one for one in alarms if one.cleared is None]
    count = f"{len(alarms)} alarm{'s' * (len(alarms) != 1)} in {_extent(series)}."
    which = "It was" if len(alarms) == 1 else "The strongest was"
    about = "; ".join(word for word in (strongest.kind, strongest.why) if word)
    sentences = [
        count,
        f"{which} raised at {_moment(strongest.raised, strongest.raised_time)}{': ' + about if about else ''}.",
    ]
    if on:
        sentences.append(f"{'One is' if len(on) == 1 else f'{len(on)} are'} still on.")
    return " ".join(sentences)


def _title(alarms: Alarms, series: Series) -> str:
    return f"{series.name or 'series'}: {len(alarms)} alarm{'s' * (len(alarms) != 1)}"


def _extent(series: Series) -> str:
    if series.timestamps is None:
        return f"{len(series):,} rows"
    first, last = (series.stamp(t) for t in (0, len(series) - 1))
    assert first is not None
    assert last is not None
    return f"{len(series):,} rows from {say_time(first)} to {say_time(last)}"


def _small_print(alarms: Alarms, said: str, *, thinned: bool) -> list[str]:
    lines = [f"{alarms.tally}. {alarms.calibration}.".replace("..", "."), *alarms.calibration.notes]
    lines += [f"{one.channel} fell silent at {_moment(one.since, one.since_time)}." for one in alarms.silences]
    if said:
        lines.append(said)
    if thinned:
        lines.append("So many rows are drawn as the least and the greatest value of each stretch; no peak is left out.")
    return lines


def _moment(instant: int | None, stamp: str | float | None) -> str:
    return f"row {instant}" if stamp is None else say_time(stamp)


def _table(alarms: Alarms, x: Array) -> str:
    if not len(alarms):
        return ""
    return (
        "<div class='wide'><table><thead><tr><th>raised</th><th>since</th><th>until</th><th class='figure'>x threshold</th><th>what</th>"
        "<th>why</th></tr></thead><tbody>" + "".join(_row(one, x) for one in alarms) + "</tbody></table></div>"
    )


def _row(one: Alarm, x: Array) -> str:
    start, stop = _span(x, one.onset, one.cleared)
    room = AROUND * max(stop - start, float(x[-1] - x[0]) / 50)
    blame = ", ".join(f"{name} {share:.0%}" for name, share in list(one.channels.items())[:3] if share >= 0.005)
    cells = [
        _moment(one.onset, one.onset_time),
        "still on" if one.cleared is None else _moment(one.cleared, one.cleared_time),
    ]
    button = f"<button data-from='{start - room:.6f}' data-to='{stop + room:.6f}'>{escape(_moment(one.raised, one.raised_time))}</button>"
    strength = f"{one.peak / one.threshold:.1f}" if one.threshold else ""
    return (
        f"<tr><td>{button}</td>" + "".join(f"<td class='time'>{escape(cell)}</td>" for cell in cells)
        + f"<td class='figure'>{escape(strength)}</td><td>{escape(one.kind)}</td><td>{escape(one.why or blame)}{escape(f' (suppressed: {one.suppressed})') if one.suppressed else ''}</td></tr>"
    )  # fmt: skip


def _axis(series: Series) -> tuple[Array, bool, str]:
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


def _span(x: Array, start: int, stop: int | None) -> list[float]:
    last = len(x) - 1
    return [float(x[min(start, last)]), float(x[last if stop is None else min(stop, last)])]


def _chosen(alarms: Alarms, series: Series, most: int) -> list[int]:
    named = {reason.channel for one in alarms for reason in one.reasons}
    order = blamed(alarms, series, series.n_channels)
    told = [c for c in order if series.channels[c] in named]
    return (told or order[:3])[:most]


def _thinned(length: int) -> npt.NDArray[np.int64] | None:
    """Rows ``(n, 2)`` at which stretches of a long series are drawn; None where every row is."""
    if length <= MOST_POINTS:
        return None
    edges = np.linspace(0, length, MOST_POINTS // 2 + 1).astype(np.int64)
    return np.stack([edges[:-1], (edges[:-1] + edges[1:]) // 2], axis=1)


def _extremes(values: Array, rows: npt.NDArray[np.int64]) -> Array:
    """The least and the greatest value of each stretch, in the order of time as near as two points can say it."""
    low = np.fmin.reduceat(values, rows[:, 0])
    high = np.fmax.reduceat(values, rows[:, 0])
    return np.stack([low, high], axis=1).ravel()


def _numbers(values: Array, *, digits: int = 6) -> list[float | None]:
    return [None if not np.isfinite(value) else float(f"{value:.{digits}g}") for value in values.tolist()]


def _curve(label: str, look: str, values: Array, rows: npt.NDArray[np.int64] | None) -> dict[str, Any]:
    if rows is not None:
        values = _extremes(values, rows) if look in ("seen", "limit") else values[rows.ravel()]
    return {"label": label, "look": look, "values": _numbers(values)}


def _statistic(alarms: Alarms, rows: npt.NDArray[np.int64] | None) -> dict[str, Any]:
    level = np.full(len(alarms.statistic), alarms.threshold)
    known = alarms.statistic[np.isfinite(alarms.statistic)]
    steep = len(known) > 0 and float(known.max()) > 20 * alarms.threshold > 0
    return {
        "name": "Evidence against the threshold",
        "height": 170,
        "log": alarms.threshold if steep else None,
        "lines": [_curve("evidence", "seen", alarms.statistic, rows), _curve("threshold", "limit", level, rows)],
        "band": None,
    }


def _channel(
    name: str, values: Array, band: tuple[Array, Array] | None, rows: npt.NDArray[np.int64] | None
) -> dict[str, Any]:
    lines = []
    if band is not None:
        middle, spread = band
        lines = [
            _curve("up to", "edge", middle + 2 * spread, rows),
            _curve("from", "edge", middle - 2 * spread, rows),
            _curve("expected", "expected", middle, rows),
        ]
    lines.append(_curve("seen", "seen", values, rows))
    return {"name": name, "height": 200, "log": None, "lines": lines, "band": [1, 2] if band is not None else None}


def _safe_json(document: Any) -> str:
    """JSON in which no tag, comment or line separator can begin."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
