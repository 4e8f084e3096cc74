"""The alarms of one series as one page that can be mailed: the answer in words, what happened when, the channels to look at.

The page is :mod:`tisat.plotting.page`'s: one file, no network. It draws what it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from tisat.alarms.alarms import Alarm, Alarms
from tisat.alarms.ongoing import called, count_words, merged_words, rows_on
from tisat.alarms.plot import contributing, series_of
from tisat.alarms.recurrence import recurrence_lines
from tisat.alarms.tally import say_beside, say_moment, say_time
from tisat.events import events_from_labels
from tisat.plotting.charts import MOST_POINTS, Mark, alarm_chart, span, thinned, time_axis
from tisat.plotting.page import Block, Key, Section, render_page
from tisat.series import SeriesLike
from tisat.utils.types import Array

if TYPE_CHECKING:
    from tisat.series import Series

__all__ = ["MOST_POINTS", "alarm_page", "answer"]

MOST_CHANNELS = 8
SHORT = 20  # letters of a time that stay in one line
AROUND = 1.5  # lengths of an alarm shown before and after it when it is clicked
HOW = "Drag to zoom; a double click or the button goes back. The names above switch a channel on and off."


def alarm_page(
    alarms: Alarms,
    given: SeriesLike,
    *,
    expected: tuple[Array, Array] | None = None,
    channels: int = MOST_CHANNELS,
    command: str = "",
    most: int = MOST_POINTS,
) -> str:
    """The page as text.

    Parameters
    ----------
    alarms : Alarms
    given : Series, array, dataframe or file path
        What they were raised on, with the channels of the model.
    expected : pair of arrays of shape (T, C), optional
        What the detector expected of each channel, and the usual spread: drawn as a band of two spreads.
    channels : int
        How many channels are drawn at most; those that alarms name come first.
    command : str
        Printed on top and at the foot.
    most : int
        Points of a curve at most; the least and the greatest value of each stretch are always among them.
    """
    series = series_of(alarms, given, whose="alarm_page")
    x, _, axis_label = time_axis(series)
    panels, all_of_them = _chosen(alarms, series, channels)
    marks = _marks(alarms, series, x)
    thin = " So many rows are drawn as the least and the greatest value of each stretch; no peak is left out."
    chart = alarm_chart(
        series,
        alarms,
        expected,
        channels=all_of_them,
        shown=panels,
        tracks=[lane for lane in ("faults", "alarms", "false alarms") if any(m.lane == lane for m in marks)],
        marks=marks,
        caption=f"{HOW} Blue: what was expected, with two usual spreads around it."
        + thin * (thinned(len(series), most=most) is not None),
        most=most,
        legend=[kind for kind in ("found", "missed", "true", "false", "alarm") if any(m.kind == kind for m in marks)],
    )
    sections = [Section("What happened", [chart])]
    if len(alarms):
        sections.append(Section("The alarms and their reasons", [Block(_table(alarms, x)), _reading(alarms)]))
    sections.append(Section("The budget", _small_print(alarms, axis_label)))
    return render_page(
        _title(alarms, series),
        sections,
        answer=answer(alarms, series),
        keys=_keys(alarms, series),
        next_steps=_steps(alarms),
        command=command,
    )


def answer(alarms: Alarms, series: Series) -> str:
    """The whole in one or two sentences."""
    if not len(alarms):
        return " ".join([f"No alarm in {_extent(series)}.", *_silent(alarms)])
    strongest = max(alarms, key=lambda one: one.peak / one.threshold)
    on = [one for one in alarms if one.cleared is None]
    count = f"{count_words(called(alarms))} in {_extent(series)}{merged_words(alarms, '; ')}."
    subject = "It was" if len(alarms) == 1 else "The strongest was"
    reasons = "; ".join(map(str, strongest.reasons[:2])) or strongest.why
    about = "; ".join(word for word in (strongest.kind, reasons) if word)
    sentences = [
        count,
        f"{subject} raised at {say_moment(strongest.raised, strongest.raised_time)}{': ' + about if about else ''}.",
    ]
    if on:
        sentences.append(f"{'One is' if len(on) == 1 else f'{len(on)} are'} still on.")
    ongoing = sum(one.state == "ongoing" for one in alarms)
    if ongoing:
        sentences.append(f"{'One is' if ongoing == 1 else f'{ongoing} are'} ongoing: the channels are still different.")
    return " ".join([*sentences, *_silent(alarms)])


def _silent(alarms: Alarms) -> list[str]:
    """A sentence for each channel that fell silent: what is blind is said on top."""
    return [f"{one.channel} fell silent at {say_moment(one.since, one.since_time)}." for one in alarms.silences]


def _title(alarms: Alarms, series: Series) -> str:
    return f"{series.name or 'series'}: {count_words(alarms)}"


def _extent(series: Series) -> str:
    if series.timestamps is None:
        return f"{len(series):,} rows"
    first, last = (series.stamp(t) for t in (0, len(series) - 1))
    assert first is not None
    assert last is not None
    return f"{len(series):,} rows from {say_time(first)} to {say_time(last)}"


def _keys(alarms: Alarms, series: Series) -> list[Key]:
    count, words = count_words(alarms).split(" ", 1)
    keys = [Key(count, words, "alarm" if len(alarms) else "found")]
    faults, found = _labelled_faults(alarms, series)
    if len(faults):
        keys.append(Key(f"{sum(found)} of {len(faults)}", "labelled faults had an alarm while they lasted", "found"))
    keys.append(Key(str(alarms.calibration.budget), "false alarms you said you accept"))
    on = int(rows_on(alarms).sum())
    if on:
        keys.append(Key(f"{on / len(series):.1%}", "of the rows had an alarm on"))
    return keys


def _steps(alarms: Alarms) -> list[str]:
    steps = []
    if len(alarms):
        steps += [
            "Look at the first reason of each alarm in the chart of its channel: a click on the time of an alarm goes there.",
            "Say what each alarm was with `tisat label`; leave out alarms of a channel with `tisat alarm --suppress CHANNEL`.",
        ]
    return [
        *steps,
        "Too many alarms, or too few: `tisat recalibrate --model MODEL --budget 1/week --out NEW` finds the threshold for another budget.",
    ]


def _reading(alarms: Alarms) -> str:
    return (
        "Raised: when the evidence reached the threshold. Since: when the trouble probably began. x threshold: how far the evidence went above the "
        "threshold. What: the shape it has. Why: the value seen, the value expected and its usual spread, in your units."
        + (" A time in a box can be clicked." if len(alarms) else "")
    )


def _small_print(alarms: Alarms, said: str) -> list[str]:
    lines = recurrence_lines(alarms)
    if alarms.movement is not None and alarms.movement.moved:
        lines.append(str(alarms.movement))
    lines += [f"{alarms.tally}. {alarms.calibration}".replace("\n", " "), *alarms.calibration.notes]
    return [*lines, said] if said else lines


def _labelled_faults(alarms: Alarms, series: Series) -> tuple[list[tuple[int, int]], list[bool]]:
    """Labelled faults, and whether an alarm was on while each lasted."""
    if series.labels is None:
        return [], []
    faults = [(int(start), int(stop)) for start, stop in events_from_labels(series.labels)]
    active = np.asarray(alarms.active, dtype=bool)
    return faults, [bool(active[start:stop].any()) for start, stop in faults]


def _marks(alarms: Alarms, series: Series, x: Array) -> list[Mark]:
    """Alarms, and where there are labels: faults found and missed, and alarms that touch none of them."""
    faults, found = _labelled_faults(alarms, series)
    marks = [
        Mark(*span(x, start, stop), "found" if hit else "missed", "found" if hit else "missed", "faults", f"labelled fault, {'found' if hit else 'missed: no alarm while it lasted'}")
        for (start, stop), hit in zip(faults, found, strict=True)
    ]  # fmt: skip
    for alarm in alarms:
        stop = alarm.cleared if alarm.cleared is not None else len(x)
        false = bool(faults) and not any(alarm.raised < end and begin < stop for begin, end in faults)
        about = "; ".join(word for word in (alarm.kind or "alarm", alarm.why, alarm.joined) if word)
        when = say_moment(alarm.raised, alarm.raised_time)
        lane, kind = ("false alarms", "false") if false else ("alarms", "true" if faults else "alarm")
        marks.append(Mark(*span(x, alarm.raised, alarm.cleared), kind, alarm.kind or "alarm", lane, f"{when}: {about}"))
    return marks


def _table(alarms: Alarms, x: Array) -> str:
    head = "<th class=left>raised</th><th class=left>since</th><th class=left>until</th><th>x threshold</th><th class=left>what</th><th class=left>why</th>"
    return f"<div class='wide' tabindex='0'><table><thead><tr>{head}</tr></thead><tbody>{''.join(_row(one, x) for one in alarms)}</tbody></table></div>"


def _row(one: Alarm, x: Array) -> str:
    start, stop = span(x, one.onset, one.cleared)
    margin = AROUND * max(stop - start, float(x[-1] - x[0]) / 50)
    attribution = ", ".join(f"{name} {share:.0%}" for name, share in list(one.channels.items())[:3] if share >= 0.005)
    raised = say_moment(one.raised, one.raised_time)
    plain = one.cleared is not None and one.ongoing_since is None and one.state != "merged"
    until = say_beside(say_moment(one.cleared or 0, one.cleared_time), raised) if plain else one.until
    cells = [say_beside(say_moment(one.onset, one.onset_time), raised), until]
    button = f"<button data-from='{start - margin:.6f}' data-to='{stop + margin:.6f}'>{escape(raised)}</button>"
    strength = f"{one.peak / one.threshold:.1f}" if one.threshold else ""
    why = "; ".join(part for part in (one.why or attribution, one.joined) if part)
    words = (("suppressed", one.suppressed), ("known", one.known))
    marks = "".join(f" ({word}: {why})" for word, why in words if why)
    return (
        f"<tr><td class='left short'>{button}</td>" + "".join(f"<td class='left{' short' * (len(cell) < SHORT)}'>{escape(cell)}</td>" for cell in cells)
        + f"<td>{escape(strength)}</td><td class=left>{escape(one.kind)}</td><td class='left why'>{escape(why)}{escape(marks)}</td></tr>"
    )  # fmt: skip


def _chosen(alarms: Alarms, series: Series, most: int) -> tuple[Sequence[int], Sequence[int]]:
    """Channels that are shown at once, and all that are on the page: those that alarms name first."""
    named = {reason.channel for one in alarms for reason in one.reasons}
    order = contributing(alarms, series, series.n_channels)
    told = [c for c in order if series.channels[c] in named] or order[:3]
    listed = (told + [c for c in order if c not in told])[:most]
    return told[: min(4, most)], listed
