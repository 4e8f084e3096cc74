"""The life of an alarm after its statistic fell: ongoing while its channels are still different, then back.

The statistic of an alarm measures change against a moving reference, so it falls although a step stays. What holds an alarm is the mean
deviation of each channel it names over 40 rows (the last 12 of them, too) from what the others say, beside 1.25 times the largest normal one.
It raises nothing and enters no statistic.

* **raised**: the statistic is above its threshold;
* **ongoing**: it fell, and a channel that the alarm names is still different from training and from what was accepted;
* **back**: for 20 rows none was;
* **new normal**: somebody accepted it, or the policy ``rearm`` did;
* **merged**: at its raise an earlier one that is ongoing names all its channels: it calls nobody, unless another channel joins;
* **cleared**: it fell, and nothing is known of its channels: the detector has no such state.

Rows of which nothing is known (a gap, warm-up, a channel without data) change nothing: what was different stays so. Each operating mode in
which they were different is looked at by itself: a heater that is too hot is not back because the plant stands still, but once it is as usual
in the modes of half the rows in which it was not. A mode that does not come for 5,000 rows counts no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tisat.alarms.present_mode import MEAN, STEADY, PresentMode, Switch
from tisat.errors import ArtefactError, ParameterError
from tisat.io.durations import nanoseconds_of
from tisat.utils.stage import Folded, State
from tisat.utils.types import Array, Flags, Integers

if TYPE_CHECKING:
    from tisat.alarms.alarms import Alarm, Alarms

MARGIN = 1.25  # times the largest normal mean deviation
ELSEWHERE = 5000  # rows without a mode in which a channel was different, after which an alarm is back
MOST_MODES = 16  # that are remembered of an alarm
RECENT, NEAR = (
    12,
    0.5,
)  # rows whose mean deviation, within half the limit, says that the rest of the longer mean is past
SETTLED = 20  # rows without a difference after which an alarm is back
REARM = "a duration such as '6h', '500 rows', or 0"
STATES = ("raised", "ongoing", "back", "new normal", "merged", "cleared")

Stamp = str | float | None
_ROWS = re.compile(r"\s*(\d+)\s*rows?\s*")


def rows_on(alarms: Alarms) -> Flags:
    """Mark the rows with an alarm on: its statistic is above the threshold, or it is ongoing."""
    on = np.array(alarms.active, dtype=np.bool_)
    for alarm in alarms:
        if alarm.ongoing_since is not None:
            on[alarm.raised : alarm.back] = True
    return on


def called(alarms: Iterable[Alarm]) -> list[Alarm]:
    """The alarms that were not merged into one that is ongoing."""
    return [alarm for alarm in alarms if alarm.state != "merged"]


def merged_words(alarms: Sequence[Alarm], sep: str = ", ") -> str:
    """Say how many alarms were merged; empty where none was."""
    merged = len(alarms) - len(called(alarms))
    return f"{sep}{merged} merged into one that is ongoing" if merged else ""


def count_words(alarms: Sequence[Alarm]) -> str:
    """Say how many alarms there are, and how many were merged into one that is ongoing."""
    count = len(called(alarms))
    return f"{count} alarm{'s' * (count != 1)}{merged_words(alarms)}"


def rearm_rows(rearm: object, period: float | None) -> int | None:
    """Rows after which an ongoing alarm is taken for the new normal.

    None: never by itself.

    Examples
    --------
    >>> rearm_rows("6h", 60.0), rearm_rows("500 rows", None), rearm_rows(0, None), rearm_rows(None, 60.0)
    (360, 500, 0, None)
    """
    if rearm is None:
        return None
    rows = _ROWS.fullmatch(rearm) if isinstance(rearm, str) else None
    if rows is not None:
        return int(rows[1])
    if rearm in (0, "0"):
        return 0
    seconds = nanoseconds_of(rearm, name="rearm", whose="Watch", must=REARM) * 1e-9
    if period is None:
        raise ParameterError.about(
            "rearm", f"must be in rows where rows have no clock, '500 rows'. Got {rearm!r} instead.", whose="Watch"
        )
    return max(round(seconds / period), 1)


@dataclass
class InMode:
    """What is known of an alarm in one operating mode."""

    positions: Array  # (K,) of the channels that switch
    different: Flags  # (C,) as last known
    calm: int = 0  # rows since a channel it names was different
    rows: int = 0  # in which one was


@dataclass
class Followed:
    """An alarm that is on or ongoing."""

    alarm: Alarm
    different: Flags  # (C,) as last known since it was raised
    calm: int = 0  # rows since a channel it names was different
    named: tuple[Alarm, Integers] | None = None  # its channels, and of which alarm: found once, not at every row
    accepted: bool = False  # while it was on: its level at its end is normal
    modes: list[InMode] = field(default_factory=list)  # in which a channel was different
    elsewhere: int = 0  # rows since the last one in a mode in which it still is


class Ongoing(Folded[Array | None, tuple["Alarm", ...]]):
    """Follow the channels of alarms from row to row.

    Parameters
    ----------
    limits : array of shape (C,), optional
        The largest normal mean deviation of each channel, 0 where unknown; None: the detector has no such state.
    channels : sequence of str
    rearm : int, optional
        Rows after which an ongoing alarm is taken for the new normal; 0: alarms are never ongoing.
    switches : sequence of (int, float)
        Channels that switch the operating mode; see :class:`PresentMode`.
    """

    def __init__(
        self,
        limits: Array | None,
        channels: Sequence[str],
        *,
        rearm: int | None = None,
        switches: Sequence[Switch] = (),
    ) -> None:
        has_limits = limits is not None and bool((limits > 0).any())
        self.known = has_limits and rearm != 0
        self._names = tuple(channels)
        self._channels = {name: c for c, name in enumerate(channels)}
        count = len(channels) if has_limits else 0
        self._limits = MARGIN * limits if limits is not None and has_limits else np.zeros(count)
        self._limited = self._limits > 0
        self._rearm = rearm
        self.recent = np.full((MEAN, count), np.nan)  # the last deviations, newest last
        self.accepted = np.full(count, np.nan)  # mean deviations that were accepted as normal
        self.mode = PresentMode(switches)
        self.on: Followed | None = None
        self.ongoing: list[Followed] = []

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms that are ongoing, the earliest first."""
        return tuple(one.alarm for one in self.ongoing)

    def begin(self, alarm: Alarm) -> Alarm:
        """Follow an alarm that was raised at the row just taken in; merged where those that are ongoing name its channels."""
        if self.known:
            alarm = replace(alarm, state="merged") if self._covers(alarm.named) else alarm
            self.on = Followed(alarm, np.zeros(len(self._limits), dtype=np.bool_))
        return alarm

    def join(self, alarm: Alarm) -> Alarm:
        """Raise an alarm that was merged, where a channel has joined that no ongoing alarm names."""
        return replace(alarm, state="raised") if alarm.state == "merged" and not self._covers(alarm.named) else alarm

    def skip(self, rows: int) -> None:
        """Take in rows of which nothing is known and after which no alarm is over."""
        if self.known:
            for _ in range(min(rows, MEAN)):
                self.recent[:-1] = self.recent[1:]
                self.recent[-1] = np.nan

    def follow(self, deviations: Array | None, known: Flags, values: Array) -> None:
        """Take in the deviations ``(T, C)`` of rows, those that are ``known``, and values, while no alarm is on or ongoing."""
        if self.known:
            for row in values[-STEADY - 1 :]:  # no earlier one matters
                self.mode.step(row)
            last = slice(max(len(known) - MEAN, 0), None)
            few = np.full((len(known[last]), self.recent.shape[1]), np.nan)
            if deviations is not None:
                few[known[last]] = deviations[last][known[last]]
            self.recent[: MEAN - len(few)] = self.recent[len(few) :].copy()
            self.recent[MEAN - len(few) :] = few

    def step(
        self, deviations: Array | None, /, *, row: int = 0, stamp: Stamp = None, values: Array | None = None
    ) -> tuple[Alarm, ...]:
        """Take in the deviations and values ``(C,)`` of a row, None where unknown.

        The alarms that were ongoing and are not any more.
        """
        if not self.known:
            return ()
        self.mode.step(values)
        self.recent[:-1] = self.recent[1:]
        self.recent[-1] = np.nan if deviations is None else deviations
        if self.on is None and not self.ongoing:
            return ()
        mean = np.add.reduce(self.recent, axis=0) / MEAN
        valid = ~np.isnan(mean) & self._limited
        if not np.logical_or.reduce(valid):
            return ()
        outside = self._outside(mean)
        different = outside & ~(np.abs(mean - self.accepted) <= self._limits)
        ended = []
        for episode in self.ongoing if self.on is None else [*self.ongoing, self.on]:
            if episode.named is None or episode.named[0] is not episode.alarm:
                episode.named = episode.alarm, self._named(episode.alarm)
            channel_names = episode.named[1]
            self._compare(episode, channel_names, different, valid)
            if episode is self.on:
                continue
            state = ""
            if episode.calm >= SETTLED:
                state = "new normal" if outside[channel_names][valid[channel_names]].any() else "back"
            elif self._rearm is not None and row - (episode.alarm.ongoing_since or 0) >= self._rearm:
                state = "new normal"
                self._accept(channel_names, mean)
            if state:
                episode.alarm = replace(episode.alarm, state=state, back=row, back_time=stamp)
                ended.append(episode)
        self.ongoing = [episode for episode in self.ongoing if episode.alarm.state == "ongoing"]
        return tuple(episode.alarm for episode in ended)

    def _compare(self, episode: Followed, named: Integers, different: Flags, valid: Flags) -> None:
        """Take in what is different at a row, in its operating mode once the row is of one alone."""
        mode = next((one for one in episode.modes if self.mode.is_at(one.positions)), None)
        if mode is None and self.mode.settled and len(episode.modes) < MOST_MODES and (different & valid)[named].any():
            mode = InMode(self.mode.positions, np.zeros(len(valid), dtype=np.bool_))
            episode.modes.append(mode)
        if not episode.modes:
            np.copyto(episode.different, different, where=valid)
            episode.calm = 0 if episode.different[named].any() else episode.calm + int(valid[named].any())
            return
        if mode is not None and self.mode.settled:
            np.copyto(mode.different, different, where=valid)
            mode.calm = 0 if mode.different[named].any() else mode.calm + int(valid[named].any())
            mode.rows += not mode.calm
        still = [one for one in episode.modes if one.different[named].any()]
        episode.elsewhere = 0 if self.mode.settled and any(one is mode for one in still) else episode.elsewhere + 1
        if episode.elsewhere >= ELSEWHERE:
            for one in still:
                one.different, one.calm = valid & False, SETTLED
        over = [one.rows for one in episode.modes if one.calm >= SETTLED]
        is_over = 2 * sum(over) >= sum(one.rows for one in episode.modes)
        episode.different = np.logical_or.reduce([one.different & (not is_over) for one in episode.modes])
        episode.calm = SETTLED if is_over else 0

    def _outside(self, mean: Array) -> Flags:
        """Which channels are beyond their limit ``(C,)``, in the last rows, too."""
        recent = np.abs(np.add.reduce(self.recent[-RECENT:], axis=0)) / RECENT
        return np.asarray((np.abs(mean) > self._limits) & ~(recent <= NEAR * self._limits))

    def clear(self, alarm: Alarm) -> Alarm:
        """The alarm, whose statistic fell at the row just followed, with its state."""
        followed, self.on = self.on, None
        if not self.known or followed is None:
            return replace(alarm, state="cleared")
        merged = alarm.state == "merged"
        channel_names = self._named(alarm)
        if not len(channel_names):
            return replace(alarm, state="cleared")
        if followed.accepted:
            self._accept(channel_names, np.add.reduce(self.recent, axis=0) / MEAN)
            return replace(alarm, state="new normal", back=alarm.cleared, back_time=alarm.cleared_time)
        different = channel_names[followed.different[channel_names]]
        if not len(different):
            if merged:
                return alarm
            accepted = bool(self._outside(np.add.reduce(self.recent, axis=0) / MEAN)[channel_names].any())
            state = "new normal" if accepted else "back"
            return replace(alarm, state=state, back=alarm.cleared, back_time=alarm.cleared_time)
        if self._covers({self._names[c] for c in different}):  # they are another alarm's, which goes on
            return alarm if merged else replace(alarm, state="back", back=alarm.cleared, back_time=alarm.cleared_time)
        followed.alarm = replace(alarm, state="ongoing", ongoing_since=alarm.cleared, known="")
        self.ongoing.append(followed)
        return followed.alarm

    def accept(self, row: int, stamp: Stamp, *, raised: int | None = None) -> tuple[Alarm, ...]:
        """Take the present level of the channels of alarms for normal; of one that is on, the level at its end.

        The alarms that are not ongoing any more.

        ``raised`` takes one alarm by the row of its raise; all unless given.
        """
        mean = np.add.reduce(self.recent, axis=0) / MEAN
        episodes = [one for one in self.ongoing if raised is None or one.alarm.raised == raised]
        on = [self.on] if self.on is not None and raised in (None, self.on.alarm.raised) else []
        for one in [*episodes, *on]:
            one.accepted = True
            self._accept(self._named(one.alarm), mean)
        self.ongoing = [one for one in self.ongoing if one not in episodes]
        return tuple(replace(one.alarm, state="new normal", back=row, back_time=stamp) for one in episodes)

    def _accept(self, named: Integers, mean: Array) -> None:
        there = named[~np.isnan(mean[named])]
        self.accepted[there] = mean[there]

    def _covers(self, names: set[str]) -> bool:
        """Whether alarms that are ongoing name all these channels, which are still different."""
        different: set[str] = set()
        for one in self.ongoing:
            if one.modes and not any(self.mode.is_at(mode.positions) for mode in one.modes):
                continue  # nothing is known of it in this mode
            places = self._named(one.alarm)
            still = places[one.different[places]]  # none for a few rows: it is ongoing until it was back for SETTLED
            different.update(self._names[c] for c in (still if len(still) else places))
        return bool(names) and names <= different

    def _named(self, alarm: Alarm) -> Integers:
        """The channels of an alarm that have a limit: those with a large share, or all it gives reasons for."""
        names = alarm.named or {reason.channel for reason in alarm.reasons}
        places = sorted(self._channels[name] for name in names & self._channels.keys())
        return np.array([c for c in places if self._limits[c] > 0], dtype=np.int64)

    # ------------------------------------------------------------------ persistent state

    @property
    def _followed(self) -> list[Followed]:
        return ([self.on] if self.on else []) + self.ongoing

    def state(self) -> State:
        """Return everything that continues after a restart."""
        flags = [one.different for one in self._followed]
        return {
            "alarm": None if self.on is None else self.on.alarm.to_json(),
            "ongoing": [one.alarm.to_json() for one in self.ongoing],
            "calm": [one.calm for one in self.ongoing],
            "different": [np.flatnonzero(one).tolist() for one in flags],
            "accepted_on": self.on is not None and self.on.accepted,
            "modes": [
                [
                    [mode.positions.tolist(), np.flatnonzero(mode.different).tolist(), mode.calm, mode.rows]
                    for mode in one.modes
                ]
                for one in self._followed
            ],
            "elsewhere": [one.elsewhere for one in self._followed],
            "mode": self.mode.state(),
            "deviations": self.recent.copy(),
            "accepted": self.accepted.copy(),
        }

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        from tisat.alarms.alarms import Alarm

        self.on, self.ongoing = None, []
        if not self.known:
            return
        self.recent[:], self.accepted[:] = state["deviations"], state["accepted"]
        on = None if state["alarm"] is None else Alarm.from_json(state["alarm"])
        alarms = [Alarm.from_json(one) for one in state.get("ongoing", ())]
        marks = [np.asarray(one, dtype=np.int64) for one in state.get("different", ())]
        calm = [int(one) for one in state.get("calm", ())]
        marks = marks or [np.zeros(0, dtype=np.int64)] * (on is not None)  # states of earlier versions do not have them
        followed = [
            Followed(alarm, np.isin(np.arange(len(self._limits)), places))
            for alarm, places in zip([*([on] if on else []), *alarms], marks, strict=True)
        ]
        self._restore_modes(state, followed)
        if on is not None:
            self.on = followed.pop(0)
            self.on.accepted = bool(state.get("accepted_on", False))
        for one, rows in zip(followed, calm, strict=True):
            one.calm = rows
        self.ongoing = followed

    def _restore_modes(self, state: State, followed: Sequence[Followed]) -> None:
        """Continue with the modes; states of earlier versions have none."""
        if "modes" not in state:
            return
        self.mode.restore(state["mode"])
        for one, modes, rows in zip(followed, state["modes"], state["elsewhere"], strict=True):
            one.elsewhere = int(rows)
            one.modes = [
                InMode(
                    np.array(positions, dtype=np.float64),
                    np.isin(np.arange(len(self._limits)), places),
                    int(calm),
                    int(count),
                )
                for positions, places, calm, count in modes
            ]
            if any(mode.positions.shape != self.mode.positions.shape for mode in one.modes):
                raise ArtefactError(
                    "The modes of an alarm must be positions of the channels that switch. They are not."
                )
