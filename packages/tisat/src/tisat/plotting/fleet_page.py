"""The alarms of many machines as one page that can be mailed: a timeline of all, incidents over machines, a section for each machine.

The timeline is a drawing without a script: each alarm is a link to the section of its machine. The page is :mod:`tisat.plotting.page`'s.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from tisat.alarms.alarms import Alarm
from tisat.alarms.incidents import SPREAD, TOGETHER
from tisat.alarms.ongoing import called, count_words, merged_words
from tisat.alarms.tally import say_moment
from tisat.plotting.page import Block, Item, Key, Section, Table, render_page

if TYPE_CHECKING:
    from tisat.batch import MachineAlarms

MOST_DRAWN = 200  # machines in the timeline and with a section of their own, those that need attention first
LEFT, WIDE, HIGH, BELOW = 170.0, 1000.0, 18.0, 26.0  # of the drawing, in its own units
NARROWEST = 3.0  # of an alarm in it
CURVE = 46.0  # height of a channel's drawing


@dataclass(frozen=True)
class Incident:
    """Alarms of several machines that began together; see :mod:`tisat.alarms.incidents`."""

    start: float  # on the axis, of the first raise
    stop: float  # of the last
    machines: tuple[str, ...]  # in the order of their alarms
    alarms: tuple[Alarm, ...]

    @property
    def what(self) -> str:
        """The channels and kinds that come most often."""
        kinds = Counter(f"{next(iter(one.channels), '')} {one.kind}".strip() for one in self.alarms)
        return ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common(2) if kind)


def incidents_of(machines: Sequence[MachineAlarms]) -> list[Incident]:
    """Alarms of at least two machines that began together, as :mod:`tisat.alarms.incidents` says; in order of time.

    Parameters
    ----------
    machines : sequence of MachineAlarms
        With the places of their alarms.
    """
    raises = sorted(
        ((*place, one.machine, alarm, one.step) for one in machines for place, alarm in zip(one.places, one.alarms, strict=False)),
        key=lambda raised: (raised[0], raised[2]),
    )  # fmt: skip
    groups: list[tuple[float, float, list[tuple[float, str, Alarm]]]] = []  # raise and end of the first, and all
    for raised, over, name, alarm, step in raises:
        began = raised - min(alarm.raised - alarm.onset, TOGETHER) * step
        earlier = (each for first, end, each in groups if began <= first + SPREAD * step and began <= end)
        members = next(earlier, None)
        if members is None:
            open_still = alarm.cleared is None or alarm.state == "ongoing"
            groups.append((raised, math.inf if open_still else over, [(raised, name, alarm)]))
        else:
            members.append((raised, name, alarm))
    incidents = []
    for first, _, members in groups:
        names = tuple(dict.fromkeys(name for _, name, _ in members))
        if len(names) > 1:
            incidents.append(Incident(first, members[-1][0], names, tuple(alarm for _, _, alarm in members)))
    return incidents


def fleet_page(machines: Sequence[MachineAlarms], *, budget: str = "", command: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    machines : sequence of MachineAlarms
        Those that need attention first come first.
    budget : str
        What the budget means for each machine, in words.
    command : str
        Printed on top and at the foot.
    """
    loud = [one for one in machines if one.alarms or one.trouble or one.silent]
    loudest, rest = loud[:MOST_DRAWN], loud[MOST_DRAWN:]
    incidents = incidents_of(machines)
    clock = any(one.clock for one in machines)
    sections = [
        Section("All machines over time", [*_timeline(loudest, incidents, clock=clock), _quiet(machines, loud, rest)])
    ]
    if incidents:
        rows = [
            [_moment(one.start, clock=clock), _moment(one.stop, clock=clock), len(one.machines), ", ".join(one.machines[:8]) + (f" and {len(one.machines) - 8} more" if len(one.machines) > 8 else ""), one.what]
            for one in incidents
        ]  # fmt: skip
        caption = f"Alarms of several machines that began, by their onset or {TOGETHER} rows before their raise, until {SPREAD} rows after the first one's raise."
        sections.append(Section("Incidents over machines", [Table(["from", "to", "count", "machines", "most often"], rows, caption=caption)]))  # fmt: skip
    sections.append(Section("Machine by machine", [item for n, one in enumerate(loudest) for item in _machine(n, one)]))
    if budget:
        sections.append(Section("The budget", [budget]))
    alarms = sum(len(one.alarms) for one in machines)
    counted = count_words([alarm for one in machines for alarm in one.alarms])
    count, words = counted.split(" ", 1)
    failed = sum(bool(one.trouble) for one in machines)
    keys = [
        Key(count, words, "alarm" if alarms else "found"),
        Key(f"{sum(bool(one.alarms) for one in machines)} of {len(machines)}", "machines had one"),
        Key(str(len(incidents)), f"incident{'s' * (len(incidents) != 1)} over several machines", "onset"),
    ]
    if failed:
        keys.append(Key(str(failed), "machines could not be scored", "missed"))
    return render_page(
        f"{len(machines)} machines: {counted}",
        sections,
        answer=answer(machines, incidents),
        keys=keys,
        next_steps=["Look at one machine row by row: `tisat alarm FILE --model MODEL --html page.html`."],
        command=command,
    )


def answer(machines: Sequence[MachineAlarms], incidents: Sequence[Incident]) -> str:
    """The whole in one or two sentences."""
    with_alarms = [one for one in machines if one.alarms]
    if not with_alarms:
        return f"No alarm on {len(machines)} machines."
    worst = max(with_alarms, key=lambda one: one.worst)
    alarms = [alarm for one in with_alarms for alarm in one.alarms]
    words = f"{count_words(called(alarms))} on {len(with_alarms)} of {len(machines)} machines{merged_words(alarms)}; the strongest on {worst.machine}."
    on = sum(one.active for one in machines)
    parts = [words, f"{on} still {'has' if on == 1 else 'have'} one on." if on else ""]
    if incidents:
        widest = max(incidents, key=lambda one: len(one.machines))
        parts.append(f"The widest incident took in {len(widest.machines)} machines.")
    return " ".join(part for part in parts if part)


def _quiet(machines: Sequence[MachineAlarms], loud: Sequence[object], rest: Sequence[object]) -> str:
    count = len(machines) - len(loud)
    words = f"{count} machine{'s' * (count != 1)} had no alarm and {'are' if count != 1 else 'is'} not drawn."
    if not count:
        words = "Not one machine was without an alarm."
    return words + (f" {len(rest)} more with alarms are not drawn: they need attention least." if rest else "")


def _moment(place: float, *, clock: bool) -> str:
    if not clock:
        return f"row {place:.0f}"
    return f"{datetime.datetime.fromtimestamp(place, datetime.UTC):%Y-%m-%d %H:%M}"


def _timeline(drawn: Sequence[MachineAlarms], incidents: Sequence[Incident], *, clock: bool) -> list[Block]:
    spans = [machine for machine in drawn if machine.last > machine.first]
    if not spans:
        return []
    low, high = min(machine.first for machine in spans), max(machine.last for machine in spans)

    def x(place: float) -> float:
        return LEFT + (WIDE - LEFT) * (place - low) / max(high - low, 1e-9)

    tall = HIGH * len(drawn) + BELOW
    parts = [
        f"<svg viewBox='0 0 {WIDE:.0f} {tall:.0f}' role='img' aria-label='Alarms of all machines over time' width='100%'>"
    ]
    for incident in incidents:
        width = max(x(incident.stop) - x(incident.start), NARROWEST)
        parts.append(
            f"<rect x='{x(incident.start):.1f}' y='0' width='{width:.1f}' height='{tall - BELOW:.0f}' style='fill:var(--onset);opacity:.25'>"
            f"<title>{escape(f'{len(incident.machines)} machines together from {_moment(incident.start, clock=clock)}')}</title></rect>"
        )
    for number, machine in enumerate(drawn):
        y = HIGH * number
        label = machine.machine if len(machine.machine) <= 24 else machine.machine[:23] + "…"
        parts.append(
            f"<a href='#m{number}'><text x='{LEFT - 8:.0f}' y='{y + 13:.0f}' text-anchor='end' style='font-size:11px;fill:var(--ink)'>{escape(label)}</text></a>"
        )
        if machine.last > machine.first:
            parts.append(
                f"<line x1='{x(machine.first):.1f}' x2='{x(machine.last):.1f}' y1='{y + 9:.0f}' y2='{y + 9:.0f}' style='stroke:var(--line)'/>"
            )
        for (start, stop), alarm in zip(machine.places, machine.alarms, strict=False):
            said = f"{machine.machine}, {_moment(start, clock=clock)}: {'; '.join(word for word in (alarm.kind, alarm.why, alarm.joined) if word)}"
            parts.append(
                f"<a href='#m{number}'><rect x='{x(start):.1f}' y='{y + 3:.0f}' width='{max(x(stop) - x(start), NARROWEST):.1f}' height='{HIGH - 6:.0f}' "
                f"style='fill:var(--alarm)'><title>{escape(said)}</title></rect></a>"
            )
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        place = low + share * (high - low)
        parts.append(
            f"<text x='{x(place):.1f}' y='{tall - 8:.0f}' text-anchor='{anchor}' style='font-size:11px;fill:var(--ink)'>{escape(_moment(place, clock=clock))}</text>"
        )
    caption = "<figcaption>Each bar is an alarm, from its raise to its end; a click leads to its machine. Shaded: several machines together.</figcaption>"
    return [Block(f"<figure>{''.join(parts)}</svg>{caption}</figure>")]


def _machine(number: int, one: MachineAlarms) -> list[Item]:
    head = Block(f"<h3 id='m{number}'>{escape(one.machine)}</h3>")
    if one.trouble:
        return [head, f"Could not be scored: {one.trouble}"]
    words = f"{one.judged:,} of {one.rows:,} rows scored."
    if one.silent:
        words += f" Nothing comes from {', '.join(one.silent)}."
    rows = [
        [
            say_moment(alarm.raised, alarm.raised_time),
            alarm.until,
            f"{alarm.peak / alarm.threshold:.1f}",
            alarm.kind,
            "; ".join(part for part in (alarm.why, alarm.joined) if part)
            + (f" (known: {alarm.known})" if alarm.known else ""),
        ]
        for alarm in one.alarms
    ]
    curves = "".join(_curve(one, *curve) for curve in one.curves)
    return [
        head,
        words,
        *([Block(f"<figure>{curves}</figure>")] if curves else []),
        *([Table(["raised", "until", "x threshold", "what", "why"], rows)] if rows else []),
    ]


def _curve(one: MachineAlarms, channel: str, lows: Sequence[float], highs: Sequence[float]) -> str:
    """One channel as a band from the least to the greatest value of each stretch, alarms behind it."""
    known = [value for value in (*lows, *highs) if value == value]
    if not known or one.last <= one.first:
        return ""
    low, high = min(known), max(known)

    def y(value: float) -> float:
        return CURVE - 4 - (CURVE - 8) * (value - low) / max(high - low, 1e-300)

    def x(place: float) -> float:
        return LEFT + (WIDE - LEFT) * (place - one.first) / (one.last - one.first)

    step = (WIDE - LEFT) / len(lows)
    behind = "".join(
        f"<rect x='{x(start):.1f}' y='0' width='{max(x(stop) - x(start), NARROWEST):.1f}' height='{CURVE:.0f}' style='fill:var(--alarm);opacity:.3'/>"
        for start, stop in one.places
    )
    line = "".join(
        f"M{LEFT + step * (i + 0.5):.1f} {y(least):.1f}V{y(most) - 0.8:.1f}"
        for i, (least, most) in enumerate(zip(lows, highs, strict=True))
        if least == least
    )
    name = channel if len(channel) <= 24 else channel[:23] + "…"
    return (
        f"<svg viewBox='0 0 {WIDE:.0f} {CURVE:.0f}' role='img' aria-label='{escape(channel, quote=True)}' width='100%'>{behind}"
        f"<path d='{line}' style='stroke:var(--ink);stroke-width:{max(step, 0.8):.2f};fill:none'/>"
        f"<text x='{LEFT - 8:.0f}' y='{CURVE / 2 + 4:.0f}' text-anchor='end' style='font-size:11px;fill:var(--ink)'>{escape(name)}</text></svg>"
    )
