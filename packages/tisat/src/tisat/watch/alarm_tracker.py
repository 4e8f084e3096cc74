"""The course of an entity's alarm: where it may have begun, what each channel contributed since, what is on and what joined it.

A row goes through :meth:`Course.step` after the rule has scored it. This module reads no row and knows no threshold's origin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tisat.alarms._kernels import LARGEST
from tisat.alarms.alarms import Alarm
from tisat.alarms.cusum import Trace
from tisat.alarms.joined_channels import Climb
from tisat.alarms.ongoing import Ongoing
from tisat.alarms.patterns import demoted
from tisat.alarms.present_mode import slow
from tisat.alarms.rules import RuleRun
from tisat.alarms.sentences import RecentRows, Stillness, mode_of
from tisat.alarms.shares import explained, known_or_zero, named_shares, shares_of
from tisat.gap_filling import Silence, Stamp
from tisat.utils.stage import Folded, State
from tisat.utils.types import Array, Flags, Integers
from tisat.watch.state_files import check_alarm, check_stamp
from tisat.watch.training_notes import habits_of
from tisat.watch.watch import Watch


class Taken(NamedTuple):
    """A row that was taken in: what is to be pushed, and what became of its time."""

    status: str
    filled: Array | None  # (C,); None: nothing to push
    time: object  # as it was given
    stamp: Stamp  # as alarms carry it
    row: int = -1  # rows accepted before this one; -1: it was left out
    silences: tuple[Silence, ...] = ()  # channels that fell silent at this row, or came back
    learn: bool = True  # whether the alarm rule is to learn from it
    gap: bool = False  # nothing follows from earlier rows: an alarm that is on ends
    unconfirmed: int = 0  # rows before it that were left out until it confirmed them; they count as rows
    unconfirmed_stamp: Stamp = None  # time of the first of them
    remark: str = ""  # a sentence about how it was taken in
    clock: float = math.nan  # local time in seconds since 1970, NaN where unknown


class Judged(NamedTuple):
    """A row that the rule has judged."""

    taken: Taken
    point: Array  # (m,)
    evidence: float
    statistic: float
    active: bool
    onset: int
    judged: bool  # it has a score
    deviations: Array | None = None  # (C,) of the channels, where the detector has them
    threshold: float = math.nan  # in force at it
    contribution: Array | None = None  # (m,) of the point; None: the rule is asked, whose last row it is


@dataclass(frozen=True)
class Stretch:
    """Rows that the rule has judged, without a gap before or between them."""

    first: int  # number of the first row
    values: Array  # (n, C)
    points: Array  # (n, m)
    evidence: Array  # (n,)
    trace: Trace
    known: Flags  # (n,): rows that have a score
    deviations: Array | None  # (n, C)
    stamp: Callable[[int], Stamp]  # the time of a row by its place


class Told(NamedTuple):
    """What became of an alarm at a row of a stretch."""

    place: int
    active: bool
    raised: bool
    cleared: bool
    alarm: Alarm | None
    state: str
    ended: tuple[Alarm, ...]


class Course(Folded[Judged, "Alarm | None"]):
    """State of an alarm that may come, is on, or has just ended.

    Parameters
    ----------
    watch : Watch
        Fitted.
    run : RuleRun
        The rule as it goes.
    name : str
        The entity, as it appears in alarms.
    """

    def __init__(self, watch: Watch, run: RuleRun, *, name: str) -> None:
        self.alarm: Alarm | None = None  # the one that is on
        self.stamp: Stamp = None  # time of the last row
        self._watch, self._run, self._name = watch, run, name
        self._since_onset = np.zeros(watch.detector.normal_.shape[1])  # contributions of each coordinate
        self._amounts = watch.detector._amounts
        self._by_channel = watch.detector.traits.points_are_channels
        self._habits = habits_of(watch.detector)
        self._still = Stillness(len(watch.channels))
        self._peak = np.full(1, -1.0)  # most evidence of a row since the onset, and that row with its point
        self._peak_row = np.full(len(watch.channels), np.nan)
        self._peak_point = np.full(watch.detector.normal_.shape[1], np.nan)
        self._climb = Climb()
        limits = getattr(watch.detector, "deviation_limits", None)
        switches = getattr(watch.detector, "switches", ())
        modes = slow(switches, watch.detector.trained_on_.get("moves_every", ()))
        self.states = Ongoing(limits, watch.channels, rearm=watch.rearm_rows, switches=modes)
        self._recent = RecentRows(switches)
        self.ended: tuple[Alarm, ...] = ()  # alarms that were ongoing until the last row
        self._onset = 0  # the present onset estimate, and its time
        self._onset_time: Stamp = None
        self._rise = np.array(
            [-1.0, np.nan, -1.0]
        )  # row of the last rise, statistic of the last row, onset of what is held
        self._held = np.zeros(sum(map(len, self._told)))  # what was added up until a statistic was only held
        self._held_time: Stamp = None

    @property
    def _told(self) -> tuple[Array, ...]:
        """What was added up since the onset."""
        return self._since_onset, self._peak, self._peak_row, self._peak_point

    def step(self, row: Judged, /) -> Alarm | None:
        """Take in one row; the alarm, where it was raised, joined or cleared at it, or became more than the pattern that knew it."""
        admitted, point, evidence, statistic, active, onset, row_checked, deviations, threshold, _ = row
        before, detector = self.alarm, self._watch.detector
        if admitted.unconfirmed:
            self.states.skip(admitted.unconfirmed)
            self._recent.run([None] * min(admitted.unconfirmed, len(self._recent.rows)))
        self._recent.step(admitted.filled)
        self.ended = self.states.step(
            deviations if row_checked else None, row=admitted.row, stamp=admitted.stamp, values=admitted.filled
        )
        self._still.step(admitted.filled if row_checked else None)
        self._trace_onset(row)
        if before is None:
            if active:
                self.alarm = self.states.begin(self._raise(onset, statistic, admitted, point, threshold))
                self._climb.begin()
            return self.alarm
        if not active:
            self.alarm = None
            if admitted.unconfirmed:  # it ended with the first row that was left out, as in a file
                first = admitted.row - admitted.unconfirmed
                over = replace(before, cleared=first, cleared_time=admitted.unconfirmed_stamp)
            else:
                over = replace(before, cleared=admitted.row, cleared_time=admitted.stamp)
            return demoted(self.states.clear(over), self._watch.patterns)
        on = replace(before, peak=statistic) if statistic > before.peak else before
        if before.known:
            on = demoted(on, self._watch.patterns, now=admitted.row + 1)
        self.alarm = on
        climbed = self._climb.step(statistic, threshold=before.threshold)
        if climbed or (evidence > 0.0 and (self._by_channel or self._amounts(point[None]) is not None)):
            assert admitted.filled is not None, "a row without values ends the alarm"
            reasons = detector.explain(admitted.filled, point)
            joined = on.join(
                admitted.row, admitted.stamp, reasons, self._watch.channels, still=self._still.rows, habits=self._habits, climbed=climbed
            )  # fmt: skip
            self.alarm = on if joined is on else self.states.join(demoted(joined, self._watch.patterns))
            if self.states.on is not None:
                self.states.on.alarm = self.alarm
        return None if self.alarm is on and bool(on.known) == bool(before.known) else self.alarm

    def accept(self, row: int | None, now: int) -> tuple[Alarm, ...]:
        """Take the alarms that were on at ``row``, or all, for the new normal.

        Those that are not ongoing any more.
        """
        if row is None:
            return self.states.accept(now, self.stamp)
        known = (*self.states.alarms, *([] if self.alarm is None else [self.alarm]))
        chosen = [one for one in known if one.raised <= row and (one.cleared is None or row < one.cleared)]
        return tuple(found for one in chosen for found in self.states.accept(now, self.stamp, raised=one.raised))

    @property
    def condition(self) -> str:
        """``raised``, ``ongoing`` or ``calm``."""
        return "raised" if self.alarm is not None else "ongoing" if self.states.ongoing else "calm"

    def run_stretch(self, rows: Stretch) -> list[Told]:
        """Take in a stretch of rows; what there is to tell of those at which an alarm is on, ongoing or over.

        Calm rows go at once, all others through :meth:`step`.
        """
        found, place, contributions = list[Told](), 0, self._watch.rule.contributions
        active = np.append(np.flatnonzero(rows.trace.active), len(rows.values))
        while place < len(rows.values):
            if self.alarm is None and not self.states.ongoing:
                coming = int(active[np.searchsorted(active, place)])
                if coming > place:
                    self._follow(rows, place, coming)
                    place = coming
                    continue
            before = self.alarm is not None
            statistic, on, onset, threshold = rows.trace.row(place)
            taken = Taken("ok", rows.values[place], None, rows.stamp(place), rows.first + place)
            deviations = None if rows.deviations is None else rows.deviations[place]
            point, known = rows.points[place], bool(rows.known[place])
            share = contributions(point[None])[0] if known and self._by_channel else None
            evidence = float(rows.evidence[place])
            alarm = self.step(Judged(taken, point, evidence, statistic, on, onset, known, deviations, threshold, share))
            found.append(Told(place, on, on and not before, before and not on, alarm, self.condition, self.ended))
            place += 1
        return found

    def _follow(self, rows: Stretch, start: int, stop: int) -> None:
        """Take in rows at which no alarm is on and none is ongoing."""
        statistic, onset = rows.trace.statistic[start:stop], rows.trace.onset[start:stop]
        rises = np.flatnonzero(~(statistic <= np.append(self._rise[1], statistic[:-1])))
        rise = int(rises[-1]) if len(rises) else 0
        over = np.flatnonzero(onset[rise:] != (onset[rise] if len(rises) else self._onset))
        if len(over) and rise + over[0] > 0:  # what the last rise is made of ends here
            self._follow(rows, start, start + rise + int(over[0]))
            start += rise + int(over[0])
            rises = rises[:0]
        here = slice(start, stop)
        known, onset, now = rows.known[here], rows.trace.onset[here], rows.first + np.arange(start, stop)
        self.ended = ()
        self._recent.follow(rows.values[here])
        self.states.follow(None if rows.deviations is None else rows.deviations[here], known, rows.values[here])
        self._still.follow(rows.values[here], known)
        begins = np.flatnonzero((onset == now) | (np.diff(onset, prepend=self._onset) != 0))
        if len(begins):
            self._hold()
        counted = np.flatnonzero(known & (onset < now))
        if len(counted):  # of what was added up since an onset only the last matters
            earlier = begins[begins <= counted[-1]]
            if len(earlier):
                self._forget_contributions()
                counted = counted[counted >= earlier[-1]]
            self._add_up(rows, start + counted)
        if len(begins):
            last = int(begins[-1])
            if not len(counted) or last > counted[-1]:
                self._forget_contributions()
            since = last - int(onset[last] != now[last])  # the statistic started again after the row before
            self._onset_time = rows.stamp(start + since) if since >= 0 else self.stamp
        self._onset, self.stamp = int(onset[-1]), rows.stamp(stop - 1)
        if len(rises):
            self._rose(-1 if math.isnan(statistic[rise]) else int(now[rise]))
        self._rise[1] = statistic[-1]

    def _hold(self) -> None:
        """Keep what was added up since an onset that is over, where the statistic rose since: it is held, and may yet raise an alarm."""
        if self._rise[0] > self._onset:
            self._rise[2], self._held[:], self._held_time = self._onset, np.concatenate(self._told), self._onset_time

    def _rose(self, row: int) -> None:
        """Take in a row at which the statistic rose, -1 for one with an alarm or without a statistic: what was held is over."""
        self._rise[0] = row
        if self._rise[2] >= 0.0:
            self._rise[2], self._held[:], self._held_time = -1.0, 0.0, None

    def _forget_contributions(self) -> None:
        self._since_onset[:] = 0.0
        self._peak[0] = -1.0

    def _add_up(self, rows: Stretch, places: Integers) -> None:
        """Add up what each channel contributed at rows since the onset, and keep the row that said most."""
        points = rows.points[places]
        told = self._watch.rule.contributions(points) if self._by_channel else self._amounts(points)
        if told is not None:
            since = self._since_onset[: told.shape[1]]
            since[:] = np.cumsum(np.concatenate([since[None], known_or_zero(told)]), axis=0)[
                -1
            ]  # in order, as by single rows
        evidence = rows.evidence[places]
        said = np.where(np.isnan(evidence), 0.0, np.minimum(evidence, LARGEST))
        most = int(np.argmax(said))
        if said[most] > self._peak[0]:
            self._peak[0] = said[most]
            self._peak_row[:], self._peak_point[:] = rows.values[places[most]], points[most]

    def _trace_onset(self, row: Judged) -> None:
        """Keep the time of the onset estimate, add up what each channel contributed since, and the row that said most."""
        taken, point, evidence, onset, active = row.taken, row.point, row.evidence, row.onset, row.active
        now, stamp = taken.row, taken.stamp
        if onset != self._onset or onset == now:
            self._hold()
        if onset == now:
            self._onset_time = stamp
        elif onset != self._onset:  # the statistic started again after the alarm of the row before
            self._onset_time = self.stamp
        if onset != self._onset or (onset == now and not active):
            self._forget_contributions()
        if row.judged and (active or onset < now):
            assert taken.filled is not None, "a row without values is not scored"
            if self._by_channel:
                added = self._run.contribution(point) if row.contribution is None else row.contribution
                self._since_onset += known_or_zero(added)
            elif (told := self._amounts(point[None])) is not None:
                self._since_onset[: told.shape[1]] += known_or_zero(told[0])
            said = 0.0 if evidence != evidence else min(evidence, LARGEST)
            if said > self._peak[0]:
                self._peak[0] = said
                self._peak_row[:], self._peak_point[:] = taken.filled, point
        if self.alarm is not None or math.isnan(row.statistic):
            self._rose(-1)
        elif not row.statistic <= self._rise[1]:
            self._rose(now)
        self._rise[1] = row.statistic
        self._onset, self.stamp = onset, stamp

    def _raise(self, onset: int, statistic: float, taken: Taken, point: Array, threshold: float) -> Alarm:
        watch, shares = self._watch, dict[str, float]()
        if self._rise[2] >= 0.0 and self._rise[0] <= onset:  # the threshold came down to a statistic that is held
            for own, kept in zip(
                self._told, np.split(self._held, np.cumsum([len(one) for one in self._told])), strict=False
            ):
                own[:] = kept
            onset, self._onset_time = int(self._rise[2]), self._held_time
        if self._by_channel:
            shares = named_shares(shares_of(self._since_onset), watch.channels)
        elif self._amounts(point[None]) is not None:
            shares = named_shares(shares_of(self._since_onset[: len(watch.channels)]), watch.channels)
        why = watch.detector.explain(self._peak_row, self._peak_point)
        kind, shares, reasons = explained(why, shares, watch.channels, self._still.rows, self._habits)
        alarm = Alarm(
            raised=taken.row, onset=onset, cleared=None, peak=statistic, threshold=threshold,
            rule=watch.rule.name, budget=watch.calibration.budget, channels=shares, raised_time=taken.stamp,
            onset_time=self._onset_time, series=self._name, kind=kind, reasons=reasons,
            mode=mode_of(self._recent.rows, self._recent.switches, watch.channels),
        )  # fmt: skip
        return demoted(alarm, watch.patterns)

    def state(self) -> State:
        """Return everything that continues after a restart."""
        return {
            **self.states.state(),
            **self._still.state(),
            **{
                name: getattr(self, f"_{name}").copy()
                for name in ("since_onset", "peak", "peak_row", "peak_point", "rise", "held")
            },
            "held_time": self._held_time,
            "onset": self._onset,
            "onset_time": self._onset_time,
            "last_stamp": self.stamp,
            "alarm": None if self.alarm is None else self.alarm.to_json(),
            "climb": self._climb.state(),
            "switching": self._recent.rows.copy(),
        }

    def restore(self, state: State, /) -> None:
        """Continue from what :meth:`state` returned."""
        for name in ("onset_time", "last_stamp", "held_time"):
            check_stamp(state.get(name), name)
        self._onset, self._onset_time = int(state["onset"]), state["onset_time"]
        self.stamp, self._held_time = state["last_stamp"], state.get("held_time")
        channels = self._watch.channels  # a file keeps no order of names: largest share first, as they were
        alarm = None if state["alarm"] is None else check_alarm(state["alarm"], channels)
        ongoing = [check_alarm(one, channels) for one in state.get("ongoing", ())]
        self.alarm = None if alarm is None else Alarm.from_json(alarm)
        for name in ("since_onset", "peak", "peak_row", "peak_point", "rise", "held"):
            getattr(self, f"_{name}")[:] = state[name]
        self._still.restore(state)
        self._climb.restore(state["climb"])
        self._recent.restore({"rows": state["switching"]})
        self.states.restore({**state, "alarm": alarm, "ongoing": ongoing})
