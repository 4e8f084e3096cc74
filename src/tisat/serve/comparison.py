"""Alarms there would have been beside those that are in the book: what was avoided, what came later, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat.serve.structs import AlarmInfo, WhatIfAlarm

if TYPE_CHECKING:
    from tisat.serve.view import View

Raised = dict[str, list[tuple[float, float | None]]]  # by entity: when it is raised and cleared, seconds


@dataclass(frozen=True)
class Found:
    """A comparison."""

    book: dict[str, list[AlarmInfo]]  # of each entity, in order of time
    alarms: list[WhatIfAlarm]  # there would have been
    avoided: list[AlarmInfo]  # of the book, that would not have been
    rows: int


def book_of(view: View, names: list[str], start: float | None, stop: float | None) -> dict[str, list[AlarmInfo]]:
    """The statistical alarms of entities, in order of time."""
    found = {name: view.alarms(entity=name, start=start, stop=stop, sort="statistic", limit=10_000) for name in names}
    return {name: sorted(alarms, key=lambda one: one.raised) for name, alarms in found.items()}


def compared(book: dict[str, list[AlarmInfo]], raised: Raised, rows: int) -> Found:
    """Alarms that overlap are the same one."""
    alarms: list[WhatIfAlarm] = []
    avoided: list[AlarmInfo] = []
    for name, spans in raised.items():
        met: set[str] = set()
        for begin, end in spans:
            was = [one for one in book[name] if one.raised <= (end or np.inf) and (one.cleared or np.inf) >= begin]
            met.update(one.id for one in was)
            one = was[0] if was else None
            delay = None if one is None else begin - one.raised
            alarms.append(
                WhatIfAlarm(name, begin, end, one.id if one else None, one.label if one else "unmarked", delay)
            )
        avoided += [one for one in book[name] if one.id not in met]
    return Found(book, alarms, avoided, rows)


def sentences_of(found: Found) -> list[str]:
    """The comparison in words: "would have avoided 3 of 4", "2 min later"."""
    before: list[Any] = [one for of in found.book.values() for one in of]
    lines = [f"{len(found.alarms)} alarm{'s' * (len(found.alarms) != 1)} instead of {len(before)}."]
    for words, verb, name in ((("false", "new normal"), "avoided", "false"), (("true",), "missed", "true")):
        of = sum(one.label in words for one in before)
        if of:
            lines.append(
                f"It would have {verb} {sum(one.label in words for one in found.avoided)} of {of} alarms marked {name}."
            )
    late = [one.delay for one in found.alarms if one.label == "true" and one.delay and one.delay > 0]
    if late:
        lines.append(
            f"{len(late)} true alarm{'s' * (len(late) != 1)} would have come later, by {said_seconds(max(late))} at most."
        )
    new = sum(one.was is None for one in found.alarms)
    if new:
        lines.append(
            f"{new} of them {'is' if new == 1 else 'are'} not in the book: nobody has looked at {'it' if new == 1 else 'them'}."
        )
    return lines


def said_seconds(seconds: float) -> str:
    """A stretch of time for people.

    Examples
    --------
    >>> said_seconds(42), said_seconds(120), said_seconds(9000)
    ('42 s', '2 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.3g} min" if seconds < 5400 else f"{seconds / 3600:.3g} h"
