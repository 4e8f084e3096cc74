"""Online: rows in, results out, within a false-alarm budget; bounded memory, and a file to go on from after a crash.

Pushing rows one by one gives what the batch call gives: the points up to the rounding of a network's arithmetic, and
from the same points the same evidence, statistic and alarms to the bit, because both run the same loops.

What can happen to a row, and what is done about it:

* a missing value is carried forward for at most ``MAX_GAP`` rows, as :mod:`tisat.gap_filling` says; beyond it the channel is
  **silent**, which is said once. A detector that can do without single channels goes on with the rest; otherwise the row is
  ``unusable``, its score is NaN, an alarm that was on ends, and warm-up begins again;
* a time not after the last one is ``late`` or ``duplicate``, one far ahead of all others is ``unconfirmed`` until a second
  one confirms it: the row is left out and nothing changes, because the scores that depended on it have been given;
* a jump in time of more than ``MAX_GAP`` sampling periods, or many late rows that agree with one another (a clock that was
  set): the past is forgotten, an alarm that was on ends, and warm-up begins again;
* no time, where rows before it had one, is an error;
* infinity or a wrong number of values is an error, and nothing changes either.

What becomes of an alarm from row to row is the business of :mod:`tisat.watch.alarm_tracker`, several entities at once that of
:mod:`tisat.watch.fleet`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tisat.alarms.alarms import Alarm, Tally
from tisat.alarms.budget import BudgetLike
from tisat.alarms.calibration import Calibration
from tisat.alarms.control import EXEMPT, Movement
from tisat.alarms.episode_log import Episode, EpisodeRecord, Proposal, propose
from tisat.alarms.rules import Scored
from tisat.alarms.rules.base import Aggregation
from tisat.errors import ArtefactError
from tisat.gap_filling import Stamp, bounded
from tisat.persistence.model_file import pack_artefact, read_artefact, unpack_artefact, write_artefact
from tisat.utils.stage import State, join_state, split_state
from tisat.utils.types import Arrays, JsonDict, JsonMap
from tisat.watch.alarm_tracker import Course, Judged, Taken
from tisat.watch.clock import UNDATED, wrong_pace
from tisat.watch.gap_notes import warm_up_of
from tisat.watch.protocols import Array
from tisat.watch.row_intake import RowIntake
from tisat.watch.row_result import RowResult
from tisat.watch.state_files import complete_state, whole_state
from tisat.watch.training_zone import TrainingZone
from tisat.watch.watch import Watch


class Monitor:
    """A watch over one entity.

    Parameters
    ----------
    watch : Watch
        Fitted.
    name : str
        The entity, as it appears in alarms.

    Examples
    --------
    >>> watch = Watch("random-guess", budget="1/250 rows", rule="threshold").fit(np.random.default_rng(0).normal(size=(5000, 2)))
    >>> monitor = watch.monitor(name="pump")
    >>> verdict = monitor.update([1.0, 2.0], time="2026-01-01T00:00")
    >>> verdict.row, verdict.status, verdict.active
    (0, 'ok', False)
    >>> monitor.update([1.0, 2.0], time="2025-12-31T23:59").status
    'late'
    """

    def __init__(self, watch: Watch, *, name: str = "") -> None:
        self.watch = watch
        self.name = name
        self.counts = dict.fromkeys(("ok", "warming up", "unusable", "late", "duplicate", "unconfirmed", "refused"), 0)
        self._detector = watch.detector
        self._channels = watch.channels
        self.stream: Any = watch.detector.stream()  # a Stream; with windows, a WindowStream
        self._windowed = hasattr(self.stream, "window")
        trained: JsonDict = getattr(watch.detector, "trained_on_", {})
        dated = getattr(watch.detector, "knows_calendar", False)
        self._intake = RowIntake(
            self._channels, period=watch.period, counters=trained.get("counters", ()), step=trained.get("period_seconds"),
            partial=watch.detector.traits.partial, name=name, missing=watch.reading.get("missing", ()),
            dated=dated, zone=TrainingZone(trained, dated=dated),
            warm_up=warm_up_of(watch.detector),
        )  # fmt: skip
        self._frame: Array | None = np.empty(len(self._channels) + 1) if watch.detector.traits.clocked else None
        self.aggregation = Aggregation(watch.detector)
        self._threshold = watch.calibration.threshold
        self._run = watch.rule.start(threshold=self._threshold, control=watch.calibration.control)
        self.record = EpisodeRecord.beside(watch.calibration)  # of what it has seen: for labels and proposals
        self._no_point = np.full(watch.detector.normal_.shape[1], np.nan)
        self._course = Course(watch, self._run, name=name)

    def __repr__(self) -> str:
        return f"Monitor({self.watch!r}, name={self.name!r})"

    @property
    def calibration(self) -> Calibration:
        """The threshold, the budget behind it and how it was met on normal data."""
        return self.watch.calibration

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that is on, if one is."""
        return self._course.alarm

    @property
    def ongoing(self) -> tuple[Alarm, ...]:
        """The alarms whose statistic fell while their channels are still different; see :mod:`tisat.alarms.ongoing`."""
        return self._course.states.alarms

    @property
    def condition(self) -> str:
        """``raised``, ``ongoing`` or ``calm``: whether an alarm is on, or one is over and its channels still different."""
        return self._course.condition

    @property
    def rows(self) -> int:
        """Rows accepted so far."""
        return self._intake.rows

    @property
    def last_time(self) -> float | None:
        """The time of the last row, in nanoseconds since 1970 of a date, or as the number it came as; None without."""
        return self._intake.clock.last

    @property
    def stamp(self) -> Stamp:
        """The time of the last row, as alarms carry it."""
        return self._course.stamp

    @property
    def time_step(self) -> float | None:
        """The time of the last row in sampling periods, or its number where there is none.

        None until it is to be relied on.
        """
        clock = self._intake.clock
        if clock.last is None or self.watch.period is None:
            return float(self.rows - 1)
        seconds = clock.seconds
        return None if seconds is None else seconds / self.watch.period

    @property
    def silent(self) -> tuple[str, ...]:
        """The channels that say nothing now."""
        return self._intake.silent

    @property
    def tally(self) -> Tally:
        """How many rows were scored so far, and how many were not, and why."""
        counts = self.counts
        return Tally(
            rows=sum(counts.values()),
            judged=counts["ok"],
            warming_up=counts["warming up"],
            unusable=counts["unusable"],
            late=counts["late"] + counts["duplicate"],
            refused=counts["refused"] + counts["unconfirmed"],
        )

    @property
    def movement(self) -> Movement | None:
        """The change of the threshold since the first row; None where it is fixed."""
        return self._run.movement

    @property
    def trouble(self) -> str | None:
        """A problem with the incoming rows; None where there is none."""
        intake = self._intake
        return intake.trouble(self.stamp) or self.wrong_pace or (UNDATED if intake.undated else intake.unzoned or None)

    @property
    def wrong_pace(self) -> str | None:
        """The sentence about rows that come at another pace than in training.

        None where they do not.
        """
        return wrong_pace(self._intake.clock.pace, self.watch.period, whose=self.name or "this monitor")

    # ------------------------------------------------------------------ rows in, results out

    def update(self, row: object, time: object = None, *, learn: bool = True) -> RowResult:
        """The result on the next row.

        Parameters
        ----------
        row : sequence of C numbers, or mapping or pandas Series from channel to number
            NaN, None or an absent channel is a missing value.
        time : date or number of seconds, optional
        learn : bool
            False: the row is scored, and the alarm rule's moving reference learns nothing from it (maintenance, say).
        """
        admitted = self.take(row, time)
        if not learn:
            admitted = admitted._replace(learn=False)
        point = self._no_point if admitted.filled is None else self.stream.step(self._framed(admitted))
        deviations = None if admitted.filled is None else getattr(self.stream, "deviations", None)
        return self.judge(admitted, self.aggregation.run(point[None]), deviations)

    def extend(self, rows: Iterable[object], times: Sequence[object] | None = None) -> list[RowResult]:
        """The results on many rows, in order: a sequence of rows, or a dataframe or series with the channels by name and its own times.

        A row that cannot be read is refused with its reason. Stretches of 200 usual rows or more are scored by the code for whole
        series: their points differ from those of :meth:`update` by the detector's ``traits.rounding`` at most.
        """
        from tisat.watch.row_blocks import extend

        return extend(self, rows, times)

    def take(self, row: object, time: object) -> Taken:
        """Read a row and its time and fill its holes.

        An error where either cannot be read, and nothing has changed.
        """
        taken = self._intake.step((row, time), last=self._course.stamp)
        if taken.gap or taken.status == "unusable":
            self.stream.reset()
        return taken

    def _framed(self, taken: Taken) -> Array:
        """The row for the stream: its values, with local time where needed."""
        assert taken.filled is not None, "a row without values is not pushed"
        row = bounded(self._detector, taken.filled)
        frame = self._frame
        if frame is None:
            return row
        frame[:-1] = row  # a stream keeps what it needs of it
        frame[-1] = taken.clock
        return frame

    def gather(self, taken: Taken) -> tuple[Array | None, Array | None]:
        """Instead of pushing a row: its point, or else the window the detector is to be asked about, until the next row comes."""
        if taken.filled is None:
            return self._no_point, None
        if not self._windowed:
            return self.stream.step(self._framed(taken)), None  # without windows of bounded length: one at a time
        window = self.stream.window(self._framed(taken))
        return (self._no_point, None) if window is None else (None, window)

    @property
    def one_at_a_time(self) -> bool:
        """Whether a row must be scored before the next one is gathered."""
        return not self._windowed or self.stream.one_at_a_time

    def refuse(self, reason: str, time: object = None) -> RowResult:
        """The result on a row that could not be read."""
        self.counts["refused"] += 1
        return self._left_out("refused", time, reason=reason)

    def _left_out(self, status: str, time: object, *, reason: str = "") -> RowResult:
        return RowResult(
            row=-1, status=status, threshold=self._run.threshold, active=self.alarm is not None, time=time, reason=reason,
            entity=self.name, state=self._course.condition,
        )  # fmt: skip

    def judge(self, taken: Taken, scored: Scored, deviations: Array | None = None) -> RowResult:
        """The result on a row that was taken in, from what the detector says of it.

        ``deviations`` (C,) where it has them.
        """
        status = taken.status
        if status in ("late", "duplicate", "unconfirmed"):
            self.counts[status] += 1
            return self._left_out(status, taken.time)
        now = taken.row
        if taken.gap:
            scored = self._end_at_gap(scored, taken.unconfirmed)
        score = float(scored.scores[0])
        evidence, statistic, active, onset = self._run.step(scored, learn=taken.learn)
        self.record.step(statistic)
        if score != score and status == "ok":
            status = "warming up"
        self.counts[status] += 1
        before = self._course.alarm is not None
        changed = self._course.step(Judged(
            taken, scored.points[0], evidence, statistic, active, onset, status == "ok", deviations, self._run.used
        ))  # fmt: skip
        return RowResult(
            row=now, status=status, score=score, evidence=evidence, statistic=statistic, threshold=self._run.used,
            active=active, raised=active and not before, cleared=before and not active, alarm=changed, time=taken.time,
            silences=taken.silences, reason=taken.remark, entity=self.name, state=self._course.condition, ended=self._course.ended,
        )  # fmt: skip

    def _end_at_gap(self, scored: Scored, unconfirmed: int) -> Scored:
        """Pass the unconfirmed rows to the rule as unknown.

        The first row after a gap is unknown to it, too.
        """
        if unconfirmed:
            self._run.run(scored.unknown(unconfirmed))
            self.record.run([math.nan] * unconfirmed)
        return scored.unknown(len(scored))

    # ------------------------------------------------------------------ people's words

    def label(self, row: int, word: str) -> Episode:
        """Say what the alarm that was on at ``row`` was: ``false``, ``true``, ``expected`` or ``new normal``.

        A true or expected alarm does not count in the control of the threshold; for the rest nothing changes but the record:
        see :meth:`propose`.
        """
        before = {one.start: one.label for one in self.record.episodes}
        episode = self.record.label(row, word)
        if word == "new normal":
            self.accept(row)
        if (before[episode.start] in EXEMPT) != (word in EXEMPT):
            on = self.alarm is not None and row >= self.alarm.raised
            self._run.exempt(on=on, again=word not in EXEMPT)
        return episode

    def accept(self, row: int | None = None) -> tuple[Alarm, ...]:
        """Take the present level of the channels of an alarm for the new normal.

        The alarms that are not ongoing any more.

        ``row`` is one at which the alarm's statistic was high; all alarms that are on or ongoing unless given. An alarm that is on
        stays on until its statistic falls. Detection does not change: the next step raises its own alarm.
        """
        return self._course.accept(row, max(self.rows - 1, 0))

    def propose(self, *, budget: BudgetLike | None = None) -> Proposal:
        """Another threshold from what was seen and labelled, with its consequences.

        :meth:`Watch.adopt` puts it in force.
        """
        return propose(self.calibration, self.record, budget=budget)

    # ------------------------------------------------------------------ going on after a crash

    def state(self) -> State:
        """Return everything that continues after a restart: the states of its stages, and the counts of rows."""
        return {
            "name": self.name,
            "counts": dict(self.counts),
            "threshold": self._threshold,
            "budget": self.calibration.budget,
            **self._intake.state(),
            **self._course.state(),
            "stream": self.stream.state(),
            "run": self._run.state(),
            "record": self.record.state(),
        }

    def restore(self, state: State, /, *, recalibrate: bool = False) -> None:
        """Continue from what :meth:`state` returned.

        ``recalibrate`` continues at this watch's threshold, where the state was kept at another.
        """
        if state["threshold"] != self._threshold and not recalibrate:
            raise ArtefactError(
                f"The state must have been kept at this watch's threshold, {self._threshold:.6g} for {self.calibration.budget}. "
                f"Got {state['threshold']:.6g} for {state['budget']} instead. To go on at the new one: --recalibrate (recalibrate=True)."
            )
        self.counts = {status: int(state["counts"][status]) for status in self.counts}
        state = complete_state(state, self.state())
        self._course.restore(state)
        self._intake.restore(state)
        self.stream.restore(state.get("stream", {}))
        self._run.restore(state["run"])
        self.record.restore(state["record"])

    def _header(self, note: JsonMap | None = None) -> tuple[JsonDict, Arrays]:
        document, tensors = split_state(self.state())
        header = {"kind": "monitor", "watch": self.watch.fingerprint(), "state": document, "note": dict(note or {})}
        return header, tensors

    def to_bytes(self) -> bytes:
        """The whole state as bytes."""
        return pack_artefact(*self._header())

    def snapshot(self, path: str | Path, *, note: JsonMap | None = None) -> None:
        """Write what is needed to go on to one file, whole or not at all.

        ``note`` is kept with it.
        """
        write_artefact(path, *self._header(note))

    @classmethod
    def load(cls, watch: Watch, source: str | Path | bytes, *, recalibrate: bool = False) -> Monitor:
        """The monitor that :meth:`snapshot` or :meth:`to_bytes` kept, with the watch it had; it goes on with identical results."""
        return cls.load_with_note(watch, source, recalibrate=recalibrate)[0]

    @classmethod
    def load_with_note(
        cls, watch: Watch, source: str | Path | bytes, *, recalibrate: bool = False
    ) -> tuple[Monitor, JsonDict]:
        """Like :meth:`load`, with the note kept in the file."""
        where = "bytes" if isinstance(source, bytes) else str(source)
        header, tensors = unpack_artefact(source) if isinstance(source, bytes) else read_artefact(source)
        with whole_state(header, watch, where, kind="monitor"):
            monitor = cls(watch, name=header["state"]["name"])
            monitor.restore(join_state(header["state"], tensors), recalibrate=recalibrate)
            return monitor, dict(header["note"])
