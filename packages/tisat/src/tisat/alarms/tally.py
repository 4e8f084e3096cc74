"""Counts of rows scored and not scored; times as text."""

from __future__ import annotations

import re
from dataclasses import dataclass

DATE = re.compile(r"\d{4}-\d\d-\d\d")
OFFSET = re.compile(r"(Z|[+-]\d\d:\d\d)$")


@dataclass(frozen=True)
class Tally:
    """How many rows were scored, and how many were not, and why."""

    rows: int
    judged: int
    warming_up: int = 0  # the detector needs rows before it can say anything
    unusable: int = 0  # a value was missing for too long
    late: int = 0  # at or before the time of a row that came earlier
    refused: int = 0  # could not be read, or its time could not be believed

    def __str__(self) -> str:
        reasons = (
            (self.warming_up, "to warm up"),
            (self.unusable, "with missing values"),
            (self.late, "late or repeated"),
            (self.refused, "refused"),
        )
        why = ", ".join(f"{count} {word}" for count, word in reasons if count)
        return f"{self.judged} of {self.rows} rows judged" + (f" ({why})" if why else "")


def say_moment(row: int, stamp: str | float | None) -> str:
    """Format the time of a row, or its number where it has none.

    Examples
    --------
    >>> say_moment(7, None), say_moment(7, "2026-03-09T11:40:00")
    ('row 7', '2026-03-09 11:40')
    """
    return f"row {row}" if stamp is None else say_time(stamp)


def say_time(stamp: str | float) -> str:
    """Format a time without its T and without seconds that are zero.

    Examples
    --------
    >>> say_time("2026-03-09T11:40:00+02:00"), say_time(90.0)
    ('2026-03-09 11:40+02:00', '90')
    """
    if not isinstance(stamp, str):
        return f"{stamp:g}"
    return re.sub(r"(?<=\d\d:\d\d):00(?=$|Z|[+-])", "", stamp.replace("T", " "))


def say_beside(moment: str, beside: str) -> str:
    """Shorten a time that stands beside another: no day where it is the same, no year and no offset.

    Examples
    --------
    >>> say_beside("2026-03-09 11:29+02:00", "2026-03-09 11:40+02:00"), say_beside("2026-03-10 00:02", "2026-03-09 23:58")
    ('11:29', '03-10 00:02')
    """
    day, _, clock = moment.partition(" ")
    if not DATE.fullmatch(day) or not clock:
        return moment
    clock = OFFSET.sub("", clock)
    return clock if beside.startswith(day) else f"{day[5:]} {clock}"
