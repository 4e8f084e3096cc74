"""Which column is what: the time, the labels, and the channels, which go by name.

Where both sides have names, the same set in another order is put in order, and anything else is refused with what is
missing and what is extra. Names that are only numbers counted from 0 are no names: arrays have those.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat.errors import SeriesError
from tisat.io.timestamps import epoch_unit
from tisat.utils.near_names import meant, nearest_name
from tisat.utils.validation import check_labels

UNNAMED = "Unnamed: 0"  # a first column without a name: an index that was saved along, as pandas calls it
SAVED_INDEX = "__index_level_0__"  # the same of a parquet file
TIME_NAMES = (
    "timestamp", "time", "datetime", "date", "ds", "timestamp_(min)", "date/time", "date_time", "_time", "ts", "epoch",
    "utc", "timestamp_utc", "time_stamp", "zeit", "zeitstempel", SAVED_INDEX,
    UNNAMED.lower(),
)  # fmt: skip  # lower case; PSM has the sixth, the last two are the index of pandas that nobody named
DATE_NAMES = ("date", "datum", "day")  # of a date beside a time of the day
CLOCK_NAMES = ("time", "uhrzeit", "zeit", "clock", "time_of_day", "hour")
LABEL_NAMES = ("is_anomaly", "label", "labels", "anomaly")  # TimeEval, TSB-AD, PSM, many
FEWEST = 20  # rows from which a column can be told to be a clock or a counter
FIRST = 100  # rows in which a clock must go forward before all are looked at


def are_names(channels: Sequence[str]) -> bool:
    """Whether these are names that somebody gave, not positions.

    Examples
    --------
    >>> are_names(("flow", "pressure")), are_names(("0", "1"))
    (True, False)
    """
    return tuple(channels) not in (position_names(len(channels)), tuple(map(str, range(len(channels)))))


def position_names(count: int) -> tuple[str, ...]:
    """The names of channels that nobody named.

    Examples
    --------
    >>> position_names(2), position_names(1)
    (('0', '1'), ('value',))
    """
    return ("value",) if count == 1 else tuple(map(str, range(count)))


def choose(columns: Sequence[str], wanted: str | None, known: Collection[str]) -> str | None:
    """The column asked for, or the first that is called like one of ``known``."""
    if wanted is None:
        return next((column for column in columns if str(column).strip().lower() in known), None)
    if wanted not in columns:
        raise SeriesError(
            f"The table must have a column {wanted!r}. Got {', '.join(map(str, columns))} instead.{meant(wanted, columns)}"
        )
    return wanted


def order_of(
    given: Sequence[str], wanted: Sequence[str], *, whose: str, what: str = "series", ignore_extra: bool = False
) -> list[int] | None:
    """Where each wanted channel stands among the given ones; None where they go by position.

    Parameters
    ----------
    given, wanted : sequences of str
        Of the rows, and of the model.
    whose : str
        The model, as the sentence calls it.
    what : str
        What was given: a series, a header, a row.
    ignore_extra : bool
        Leave out columns the model does not know instead of refusing them.

    Examples
    --------
    >>> order_of(("b", "a"), ("a", "b"), whose="the model")
    [1, 0]
    """
    if tuple(given) == tuple(wanted):
        return None
    if not (are_names(given) and are_names(wanted)):
        if len(given) != len(wanted):
            raise SeriesError(
                f"The {what} given to {whose} must have the {len(wanted)} channels it was fitted on ({listed(wanted)}). "
                f"Got {len(given)} instead."
            )
        return None
    index = {name: place for place, name in enumerate(given)}
    missing = [name for name in wanted if name not in index]
    extra = [name for name in given if name not in set(wanted)]
    if missing or (extra and not ignore_extra):
        pair = next(((name, found) for name in extra if (found := nearest_name(name, missing))), None)
        hint = f" Rename {pair[0]!r} to {pair[1]!r} if they are the same." if pair else ""
        also = " Extra columns can be left out: --ignore-extra, or ignore_extra=True." if extra and not missing else ""
        differ = [f"Missing: {listed(missing)}"] if missing else []
        differ += [f"{'not' if missing else 'Not'} known to it: {listed(extra)}"] if extra else []
        raise SeriesError(
            f"The {what} given to {whose} must have the channels it was fitted on. {'; '.join(differ)}.{hint}{also}"
        )
    return [index[name] for name in wanted]


def listed(names: Sequence[str], *, most: int = 8) -> str:
    """Names for a sentence, not too many of them.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(map(str, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def clock_like(values: npt.NDArray[np.floating[Any]]) -> str:
    """What a column of numbers plainly is: ``"a clock"``, ``"a counter of rows"``, or nothing of the kind.

    Examples
    --------
    >>> clock_like(np.arange(50.0)), clock_like(1.77e9 + 60.0 * np.arange(50)), clock_like(np.sin(np.arange(50.0)))
    ('a counter of rows', 'a clock', '')
    """
    if len(values) < FEWEST or not np.isfinite(values[[0, -1]]).all():
        return ""
    if not (np.diff(values[:FIRST]) > 0).all():  # most columns: the rest is not looked at
        return ""
    steps = np.diff(values)
    if not (steps > 0).all():
        return ""
    if bool((steps == 1).all()):
        return "a counter of rows" if epoch_unit(float(values[0])) is None else "a clock"
    usual = float(np.median(steps))
    regular = float(np.mean(np.abs(steps - usual) <= 0.01 * usual))
    return "a clock" if epoch_unit(float(values[0])) is not None and regular > 0.9 else ""


def label_flags(values: npt.NDArray[np.floating[Any]], name: str, *, told: bool) -> npt.NDArray[np.bool_]:
    """Labels of a column; where nobody said that it holds them, what is not 0 and 1 is refused with how to keep the channel."""
    wrong = ~((values == 0) | (values == 1))
    if told or not wrong.any():
        return check_labels(values, name, "the table")
    row = int(np.argmax(wrong))
    raise SeriesError(
        f"The column {name!r} is taken for labels and must hold only 0 and 1. Got {values[row]:g} at row {row} instead. If it is a channel, "
        f"name it among channels=[...] (--channels) or rename it; drop=[{name!r}] (--drop {shlex.quote(name)}) leaves it out."
    )


class Roles:
    """Which columns of a table are the time, the labels and the channels.

    Parameters
    ----------
    columns : sequence of str
    time, label : str, optional
        As the user said; ``"Date+Time"`` are two columns.
    channels : sequence of str, optional
    drop : sequence of str
        Columns to leave out, where they are there; a name close to that of a column is refused.
    entity : str, optional
        The column that says which machine a row is of.
    numeric : mapping from column to bool, optional
        Which hold numbers.
    dated : sequence of str, optional
        Columns that may hold dates: they are the time before one of numbers is; those without numbers unless given.
    clocked : bool
        The time is known from elsewhere: no column is looked for.
    option : str
        What names the channels, for the notes.

    Examples
    --------
    >>> roles = Roles(["Date", "Time", "flow"], None, None, None, (), numeric={"Date": False, "Time": False, "flow": True})
    >>> roles.times, roles.channels
    (('Date', 'Time'), ['flow'])
    """

    def __init__(
        self,
        columns: Sequence[str],
        time: str | None,
        label: str | None,
        channels: Sequence[str] | None,
        drop: Sequence[str],
        *,
        entity: str | None = None,
        numeric: Mapping[str, bool] | None = None,
        dated: Sequence[str] | None = None,
        clocked: bool = False,
        option: str = "channels",
    ) -> None:
        twice = next((name for name, count in Counter(columns).items() if count > 1), None)
        if twice is not None:
            raise SeriesError(f"The columns of a table must have distinct names. Got {twice!r} twice.")
        mistyped = [name for name in drop if meant(name, columns)]  # one that is simply not there needs no dropping
        for wanted in (*(channels or ()), *mistyped, *(() if entity is None else (entity,))):
            choose(columns, wanted, ())  # refuses a column that is not there
        left = {*drop, *(() if entity is None else (entity,))}
        free = [column for column in columns if column not in left]
        open_to_roles = [column for column in free if column not in (channels or ())]
        words = [column for column in open_to_roles if (numeric or {}).get(column) is False]
        self.notes: list[str] = []
        self.times = () if clocked else time_columns(open_to_roles, time, words, dated=dated)
        for name in self.times:
            choose(free, name, ())
        self.time = self.times[0] if len(self.times) == 1 else None
        plainly = self.time in (*columns[:1], SAVED_INDEX) and len(called_times(open_to_roles)) < 2
        if time is None and self.time is not None and not plainly:
            self.notes.append(f"the column {self.time!r} was taken for the time")
        self.label = choose(open_to_roles if label is None else free, label, LABEL_NAMES)
        if label is None and self.label is not None:
            self.notes.append(f"the column {self.label!r} was taken for the labels; name it in {option} to keep it")
        others = {*self.times, *(() if self.label is None else (self.label,))}
        self.channels = [column for column in free if column not in others] if channels is None else list(channels)
        if not self.channels:
            kind = SeriesError if self.label is None else LabelsAloneError
            raise kind(f"A table must have at least one column of values. Got only {list(columns)!r}.")


class LabelsAloneError(SeriesError):
    """A table that has labels and no values."""


def called_times(columns: Sequence[str]) -> list[str]:
    """The columns that are called like a time; one without a name is the last of them."""
    found = [column for column in columns if str(column).strip().lower() in TIME_NAMES]
    return sorted(found, key=lambda column: column == UNNAMED)


def time_columns(
    columns: Sequence[str], told: str | None, words: Sequence[str], *, dated: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The column of the time, or of the ``words`` a date and a time of the day; none where there is none.

    What was told is not looked for. Of several columns that are called like a time the first of ``dated`` is taken, which are
    the ``words`` unless given.
    """
    if told is not None:
        typed: object = told  # a frame may number its columns
        if not isinstance(typed, str):
            if typed in columns:
                return (told,)
            raise SeriesError(
                f"The time of a table must be the name of a column. Got {told!r} instead. Type time={columns[0]!r} for the first."
            )
        two = "+" in told and told not in columns
        return tuple(part.strip() for part in told.split("+", 1)) if two else (told,)
    day, clock = choose(words, None, DATE_NAMES), choose(words, None, CLOCK_NAMES)
    if day is not None and clock is not None:
        return (day, clock)
    may_hold_dates = words if dated is None else dated
    found = [column for column in called_times(columns) if column != UNNAMED or column in may_hold_dates]
    return tuple([*(column for column in found if column in may_hold_dates), *found][:1])
