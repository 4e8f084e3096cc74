"""A rule over a long series, block by block: of the points only those of alarms are kept."""

from __future__ import annotations

import numpy as np

from tisat.alarms.alarms import Traced
from tisat.alarms.cusum import Trace
from tisat.gap_filling import TakenIn
from tisat.series import Series
from tisat.utils.types import Array, Integers
from tisat.watch.watch import Watch


class AlarmPoints:
    """The points of the rows from the onset of each alarm to its end, gathered as blocks go by.

    Examples
    --------
    >>> kept = AlarmPoints()
    >>> active, onset = np.array([False, False, True, False]), np.array([0, 0, 0, 3])
    >>> kept.add(0, np.arange(4.0)[:, None], Trace(np.zeros(4), active, onset, np.zeros(4)))
    >>> kept.points(slice(1, 3)).ravel().tolist(), len(kept.rows)
    ([1.0, 2.0], 2)
    """

    def __init__(self) -> None:
        self._kept: list[tuple[Integers, Array]] = []
        self._open: tuple[Integers, Array] | None = None  # rows since the last onset, of an alarm that may come
        self._sorted: tuple[Integers, Array] | None = None
        self._last = np.nan, -1  # statistic of the last row, and the onset of its last rise

    def add(self, first: int, points: Array, trace: Trace) -> None:
        """Take in the points ``(n, m)`` of the rows from ``first`` on, and what the rule made of them."""
        rows = np.arange(first, first + len(points))
        active = rows[trace.active]
        if self._open is not None:
            rows, points = np.concatenate([self._open[0], rows]), np.concatenate([self._open[1], points])
        onset = self._earliest(trace)
        needed = np.zeros(len(rows), dtype=np.bool_)
        if len(active):
            coming = np.searchsorted(active, rows)  # the next row at which an alarm is on
            there = coming < len(active)
            coming = active[np.minimum(coming, len(active) - 1)]
            needed = there & ((coming == rows) | (onset[coming - first] < rows))
        waiting = ~needed & (rows > onset[-1])
        self._kept.append((rows[needed], points[needed]))
        self._open = (rows[waiting], points[waiting])
        self._sorted = None

    def _earliest(self, trace: Trace) -> Integers:
        """The onset of each row, or that of the last rise of its statistic, where that is held: :meth:`Trace.evidence_rows`."""
        before = np.append(self._last[0], trace.statistic[:-1])
        rose = ~(trace.statistic <= before) | (trace.statistic <= 0.0)
        place = np.maximum.accumulate(np.where(rose, np.arange(len(rose)), -1))
        risen = np.where(place < 0, self._last[1], trace.onset[place])
        self._last = float(trace.statistic[-1]), int(risen[-1])
        return np.asarray(np.minimum(risen, trace.onset))

    @property
    def rows(self) -> Integers:
        """The rows that are kept."""
        return self._whole()[0]

    def points(self, rows: slice) -> Array:
        """The points ``(n, m)`` of rows of an alarm."""
        kept, points = self._whole()
        found = slice(*np.searchsorted(kept, [rows.start, rows.stop]).tolist())
        assert found.stop - found.start == rows.stop - rows.start, "the rows of an alarm are kept"
        return points[found]

    def _whole(self) -> tuple[Integers, Array]:
        if self._sorted is None:
            rows, points = (np.concatenate([block[place] for block in self._kept]) for place in (0, 1))
            order = np.argsort(rows, kind="stable")
            self._sorted = rows[order], points[order]
        return self._sorted


def run_in_blocks(watch: Watch, series: Series, seen: TakenIn) -> tuple[Traced, Array | None]:
    """Run the rule of a watch over a series in blocks; with deviations ``(T, C)``.

    Rows at the end that nothing has confirmed are left out.
    """
    detector, calibration = watch.detector, watch.calibration
    run = watch.rule.start(threshold=calibration.threshold, control=calibration.control)
    length, points, m = len(series) - seen.unconfirmed_end, AlarmPoints(), detector.normal_.shape[1]
    scores, trace = np.full(len(series), np.nan), Trace.empty(length)
    evidence, deviations = np.empty(0), None
    for rows, block in detector._point_blocks(series, seen):
        block[seen.begins[rows]] = np.nan  # an alarm of any rule ends at a gap
        if block.shape[1] > m:
            deviations = np.empty((len(series), block.shape[1] - m)) if deviations is None else deviations
            deviations[rows] = block[:, m:]
        scored = watch.scored(np.ascontiguousarray(block[:, :m]))
        scores[rows] = scored.scores
        here = slice(rows.start, min(rows.stop, length))
        if here.start >= here.stop:
            continue
        told, part = run.run(scored.rows(slice(here.stop - here.start)))
        if here.start == 0:
            evidence = np.empty((length, *told.shape[1:]))
        evidence[here] = told
        for name in ("statistic", "active", "onset", "threshold"):
            getattr(trace, name)[here] = getattr(part, name)
        points.add(here.start, scored.points[: here.stop - here.start], part)
    return Traced(scores, evidence, trace, points.points, run.movement), deviations
