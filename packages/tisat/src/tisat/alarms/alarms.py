"""Alarms as objects: when raised, since when, until when, how strong, which channels, and on what budget.

An alarm is raised at the first row of a run of active rows and cleared at the first row after it. :class:`Alarms` holds those
of one series, with the evidence, statistic and threshold they came from. This module takes points and scores, no detectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from tisat.alarms.calibration import Calibration
from tisat.alarms.control import Movement, most_alike
from tisat.alarms.cusum import Trace
from tisat.alarms.explanation import Explanation, Reason, reason_from_json, reason_to_json
from tisat.alarms.files import ADDED, COLUMNS, arrow_of, csv_of, dated, jsonl_of, write_table
from tisat.alarms.joined_channels import LARGE, Climb, Further, newly_named
from tisat.alarms.ongoing import called, count_words
from tisat.alarms.rules import AlarmRule, Scored
from tisat.alarms.sentences import UNKNOWN_HABITS, Habits, still_at
from tisat.alarms.shares import explained, named_shares, shares_between
from tisat.alarms.suppression import Suppression, Suppressor
from tisat.alarms.tally import Tally as Tally
from tisat.alarms.tally import say_moment
from tisat.alarms.tally import say_time as say_time
from tisat.events import events_from_labels
from tisat.gap_filling import Silence
from tisat.persistence.model_file import write_bytes
from tisat.series import Series, SeriesLike
from tisat.utils.extras import require
from tisat.utils.html import table, text
from tisat.utils.types import Array, Flags, Integers, JsonDict, JsonMap, Stamps

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Alarm:
    """One alarm: when it was raised and cleared, which channels contributed, and why.

    Examples
    --------
    >>> Alarm(raised=50, onset=48, cleared=60, peak=7.5, threshold=3.0, rule="excess", budget="1/day", channels={}).peak
    7.5
    """

    raised: int  # row at which it was raised
    onset: int  # estimate of when the anomaly began: the last row the statistic was 0 or an alarm ended
    cleared: int | None  # first row at which it was off again; None: still on at the end of the data
    peak: float  # largest statistic while it was on
    threshold: float  # h
    rule: str  # paper, threshold or excess
    budget: str  # false alarms the threshold was made for
    channels: dict[str, float]  # share of the evidence from the onset to the raise, largest first; empty if unknown
    raised_time: str | float | None = None  # timestamps of the three rows, where the series has them
    onset_time: str | float | None = None  # when it probably began
    cleared_time: str | float | None = None  # when its statistic had fallen
    series: str = ""  # the entity
    kind: str = ""  # what it looks like: spike, stuck, level, rhythm, ...
    reasons: tuple[Reason, ...] = ()  # the channels that matter most: seen, expected and spread in the user's units
    suppressed: str = ""  # why nobody is notified, where a rule or a window covers it; see tisat.alarms.suppression
    further: tuple[Further, ...] = ()  # channels that joined while it was on; see tisat.alarms.joined_channels
    state: str = "raised"  # raised, ongoing, back, new normal, merged or cleared; see tisat.alarms.ongoing
    ongoing_since: int | None = None  # row at which the statistic fell while its channels were still different
    back: int | None = None  # row at which they were not any more, or the new normal was accepted; its timestamp
    back_time: str | float | None = None  # when its channels were back
    mode: str = ""  # the switch within 60 rows before the raise, where the detector knows operating modes: "pump down"
    known: str = ""  # the accepted pattern it is of, where one is; see tisat.alarms.patterns

    def to_json(self) -> JsonDict:
        """Plain values, in the order of the tables."""
        return {column: getattr(self, column) for column in COLUMNS} | {
            "reasons": [reason_to_json(one) for one in self.reasons],
            "further": [one.to_json() for one in self.further],
        }

    @classmethod
    def from_json(cls, document: JsonMap) -> Alarm:
        """Back from :meth:`to_json`."""
        plain = {column: document[column] for column in COLUMNS if column not in ADDED or column in document}
        if "state" not in document:  # states of earlier versions do not have the columns of ADDED
            plain["state"] = "raised" if document["cleared"] is None else "cleared"
        further = tuple(map(Further.from_json, document.get("further", ())))
        return cls(**{**plain, "reasons": tuple(map(reason_from_json, document["reasons"])), "further": further})

    def __str__(self) -> str:
        """In one line: whose, when, since when, until when, what and why."""
        raised_at, since = say_moment(self.raised, self.raised_time), say_moment(self.onset, self.onset_time)
        plain = self.cleared is None or self.state == "ongoing"
        until = self.until if plain else f"until {self.until}"
        parts = [
            f"{self.series + ': ' if self.series else ''}alarm at {raised_at}, since {since}, {until}",
            self.kind,
            self.why,
            self.joined,
            f"suppressed ({self.suppressed})" if self.suppressed else "",
            f"known ({self.known})" if self.known else "",
        ]
        return "; ".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        return text(self)

    @property
    def until(self) -> str:
        """When it ended, in a table: ``still on``, ``ongoing since 10:40`` or the time it was over."""
        if self.cleared is None:
            return "still on"
        fell = say_time(self.cleared if self.cleared_time is None else self.cleared_time)
        if self.state == "merged":
            return f"{fell} (merged)"
        if self.state == "ongoing":
            return f"ongoing since {fell}"
        if self.ongoing_since is None or self.back is None:
            return fell
        return f"{say_time(self.back if self.back_time is None else self.back_time)} ({self.state})"

    @property
    def why(self) -> str:
        """The reasons as one sentence: ``bearing_temp 71.3, expected 58.2 ± 1.9; vibration 3.05, expected 1.49 ± 0.08``."""
        return "; ".join(map(str, self.reasons))

    @property
    def joined(self) -> str:
        """Channels that joined while it was on: ``from 11:40 also spike: vibration 3.05``."""
        return "; ".join(
            f"from {one.at if one.time is None else say_time(one.time)} also {one.kind}: {one.why}"
            for one in self.further
        )

    @property
    def named(self) -> set[str]:
        """The channels that contribute a large share, those that joined among them; one it mentions last may still join."""
        told = (self.reasons, *(one.reasons for one in self.further))
        return {reason.channel for reasons in told for reason in reasons if reason.share >= LARGE}

    def join(
        self, at: int, time: str | float | None, why: Explanation, channels: Sequence[str],
        *, still: Integers | None = None, habits: Habits = UNKNOWN_HABITS, climbed: bool = True,
    ) -> Alarm:  # fmt: skip
        """The alarm with what a row while it is on says beyond it; itself where that is nothing new."""
        reasons = newly_named(why, channels, self.named, still, habits, climbed=climbed)
        return replace(self, further=(*self.further, Further(at, time, why.kind, reasons))) if reasons else self


@dataclass(frozen=True)
class Alarms(Sequence[Alarm]):
    """The alarms of one series, and what they came from.

    Examples
    --------
    >>> from tisat.alarms import raise_alarms
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.exponential(size=3000)
    >>> scores[2000:2040] += 30.0
    >>> alarms = raise_alarms(scores, normal=rng.exponential(size=50_000), false_alarms="1/10000 rows")
    >>> [(alarm.onset, alarm.raised) for alarm in alarms]
    [(1999, 2000)]
    """

    alarms: tuple[Alarm, ...]  # in the order of time
    scores: Array  # (T,)
    evidence: Array  # (T,)
    statistic: Array  # (T,)
    active: Flags  # (T,)
    calibration: Calibration  # threshold and budget behind them
    tally: Tally  # rows judged and not judged
    silences: tuple[Silence, ...] = ()  # channels that fell silent: alarms about the data, outside the budget
    thresholds: Array = field(default_factory=lambda: np.empty(0))  # (T,), in force at each row
    movement: Movement | None = None  # where the threshold went; None where it stays
    timestamps: Stamps = field(default=None, repr=False)  # (T,), of the series

    @overload
    def __getitem__(self, index: int) -> Alarm: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Alarm, ...]: ...
    def __getitem__(self, index: int | slice) -> Alarm | tuple[Alarm, ...]:
        return self.alarms[index]

    def __len__(self) -> int:
        return len(self.alarms)

    def __iter__(self) -> Iterator[Alarm]:
        return iter(self.alarms)

    def __repr__(self) -> str:
        return f"Alarms({len(self)} in {len(self.active)} rows, rule={self.calibration.rule!r}, budget={self.calibration.budget!r})"

    def __str__(self) -> str:
        lines = [
            f"{count_words(self)}; {self.tally}",
            *map(str, self.alarms),
            str(self.calibration),
            *([str(self.movement)] if self.movement is not None and self.movement.moved else []),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (say_time(a.raised if a.raised_time is None else a.raised_time),
             say_time(a.onset if a.onset_time is None else a.onset_time),
             a.until,
             f"{a.peak / a.threshold:.1f}" if a.threshold else "", a.kind, a.why)
            for a in self.alarms
        ]  # fmt: skip
        title = f"{count_words(self)}; {self.tally}"
        return table(title, ("raised", "since", "until", "x h", "what", "why"), rows, note=str(self.calibration))

    @property
    def threshold(self) -> float:
        """The threshold h."""
        return self.calibration.threshold

    @property
    def raised(self) -> Integers:
        """The rows at which alarms were raised."""
        return np.array([alarm.raised for alarm in self.alarms], dtype=np.int64)

    def suppress(self, *rules: str | Suppression) -> Alarms:
        """Mark alarms to be suppressed: ``alarms.suppress("flow:up", "bearing_temp:2.5")``.

        Marked, not dropped: they stay in every table, with the reason in ``alarm.suppressed``.
        """
        parsed = [rule if isinstance(rule, Suppression) else Suppression.parse(rule) for rule in rules]
        return replace(self, alarms=tuple(Suppressor(parsed).run(self.alarms)))

    @property
    def unsuppressed(self) -> tuple[Alarm, ...]:
        """The alarms that are not suppressed."""
        return tuple(one for one in self.alarms if not one.suppressed)

    @property
    def calling(self) -> tuple[Alarm, ...]:
        """The alarms that call for attention: neither suppressed nor known."""
        return tuple(one for one in self.alarms if not one.suppressed and not one.known)

    def to_rows(self) -> list[JsonDict]:
        """One dictionary an alarm."""
        return [alarm.to_json() for alarm in self.alarms]

    def to_jsonl(self) -> str:
        """JSON lines."""
        return jsonl_of(self.alarms)

    def to_csv(self, path: str | Path | None = None) -> str:
        """A csv table with a header that a spreadsheet reads: shares and reasons as text, no cell is a formula.

        With a ``path`` it is written there, too.
        """
        if path is not None:
            write_bytes(path, csv_of(self.alarms).encode())
        return csv_of(self.alarms)

    def to_arrow(self) -> pa.Table:
        """A pyarrow table; shares and reasons as text."""
        return arrow_of(self.alarms)

    def to_pandas(self) -> pd.DataFrame:
        """A pandas table, times as dates with their offset (in UTC where that changes); shares and reasons as text."""
        found: pd.DataFrame = dated(self.to_arrow(), self.alarms).to_pandas()
        return found

    def to_polars(self) -> pl.DataFrame:
        """A polars table, like that of :meth:`to_pandas`; times with an offset in UTC."""
        found: pl.DataFrame = require("polars", whose="Alarms.to_polars").from_arrow(
            dated(self.to_arrow(), self.alarms, keep_offset=False)
        )
        return found

    def write(self, path: str | Path) -> None:
        """Write the table; the suffix says how: ``.csv``, ``.parquet`` or ``.jsonl``."""
        write_table(path, self.alarms)

    def plot(self, series: SeriesLike | None = None, *, channels: int = 3) -> Figure:
        """A picture: contributing channels of the series they were raised on (also a frame, an array, a file), statistic, threshold, alarms."""
        from tisat.alarms.plot import draw

        return draw(self, series, channels=channels)


class Traced(NamedTuple):
    """Scores, evidence and trace of a series under a rule."""

    scores: Array  # (T,)
    evidence: Array  # (T,) or (T, V)
    trace: Trace
    points: Callable[[slice], Array]  # of the rows of an alarm, from the row after its onset on
    movement: Movement | None  # of the threshold

    @classmethod
    def of(cls, scored: Scored, rule: AlarmRule, calibration: Calibration) -> Traced:
        """Scored rows under a fitted rule at a calibrated threshold."""
        run = rule.start(threshold=calibration.threshold, control=calibration.control)
        return cls(scored.scores, *run.run(scored), lambda rows: scored.points[rows], run.movement)


def alarms_of(
    traced: Traced,
    *,
    rule: AlarmRule,
    calibration: Calibration,
    series: Series | None = None,
    attribution: bool = False,
    explain: Callable[[int], Explanation] | None = None,
    filled: Array | None = None,
    amounts: Callable[[Array], Array | None] | None = None,
    habits: Habits = UNKNOWN_HABITS,
    tally: Tally | None = None,
    silences: tuple[Silence, ...] = (),
    states: Callable[[Sequence[Alarm]], tuple[Alarm, ...]] | None = None,
) -> Alarms:
    """The alarms of rows that a rule has gone through at a calibrated threshold.

    Parameters
    ----------
    traced : Traced
    rule, calibration
    series : Series, optional
        What was scored: for times, channel names and the entity.
    attribution : bool
        Points are the channels of the series: what each added since the onset is its share.
    explain : callable, optional
        Why a row is unusual; the shares of channels, too, where points are not channels.
    filled : array (T, C), optional
        The values with short gaps filled; needed with ``explain``.
    amounts : callable, optional
        What each channel adds to points ``(n, C)``: their sum from the onset to the raise makes the shares.
    habits : Habits
        What training has shown of the channels, for the sentences of reasons.
    tally : Tally, optional
        Rows scored and not scored; counted from the scores unless given.
    silences : tuple of Silence
    states : callable, optional
        The alarms with their states; see :func:`tisat.alarms.series_states.with_states`. Unless given they are raised or cleared.
    """
    scores, evidence, trace = traced.scores, traced.evidence, traced.trace
    valid = ~np.isnan(scores)
    alarms, climb = [], Climb()
    rows_filled = np.empty((0, 0)) if filled is None else filled
    for start, stop in events_from_labels(trace.active):
        onset, since = trace.evidence_rows(int(start))
        shares: dict[str, float] = {}
        if attribution and series is not None:
            shares = named_shares(shares_between(rule.contributions(traced.points(since))), series.channels)
        reasons: tuple[Reason, ...] = ()
        kind, cheap = "", attribution
        if explain is not None and series is not None:
            told = None if amounts is None or attribution else amounts(traced.points(since))
            if told is not None:
                shares, cheap = named_shares(shares_between(told), series.channels), True
            most = [
                0.0 if (said := float(one.sum())) != said else said for one in evidence[since]
            ]  # as a monitor adds it up
            peak = since.start + int(np.argmax(most))  # the row that carries most evidence
            still = still_at(rows_filled, valid, int(start))
            kind, shares, reasons = explained(explain(peak), shares, series.channels, still, habits)
        cleared = int(stop) if stop < len(scores) else None
        stamp = (lambda row: None) if series is None else series.stamp
        alarm = Alarm(
            raised=int(start), onset=onset, cleared=cleared, peak=float(np.max(trace.statistic[start:stop])),
            threshold=float(trace.threshold[start]), rule=rule.name, budget=calibration.budget, channels=shares,
            raised_time=stamp(int(start)), onset_time=stamp(onset), cleared_time=stamp(cleared),
            series="" if series is None else series.name, kind=kind, reasons=reasons,
            state="raised" if cleared is None else "cleared",
        )  # fmt: skip
        if explain is not None and series is not None:
            climb.begin()
            for at in range(int(start) + 1, int(stop)):
                climbed = climb.step(float(trace.statistic[at]), threshold=float(trace.threshold[start]))
                if climbed or (cheap and float(evidence[at].sum()) > 0.0):
                    still = still_at(rows_filled, valid, at)
                    alarm = alarm.join(
                        at, series.stamp(at), explain(at), series.channels, still=still, habits=habits, climbed=climbed
                    )
        alarms.append(alarm)
    judged = int(valid.sum())
    counted = Tally(rows=len(scores), judged=judged, warming_up=len(scores) - judged) if tally is None else tally
    final = tuple(alarms) if states is None else states(alarms)
    alike = most_alike([(alarm.kind, next(iter(alarm.channels), "")) for alarm in called(final) if not alarm.known])
    moved = traced.movement if traced.movement is None else replace(traced.movement, alike=alike)
    return Alarms(
        final, scores, evidence, trace.statistic, trace.active, calibration, counted, silences,
        trace.threshold, moved, None if series is None else series.timestamps,
    )  # fmt: skip
