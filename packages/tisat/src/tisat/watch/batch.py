"""Rows of many monitors at once: the detector is asked about many windows in one call, and each row is scored in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tisat.alarms.rules import Scored
from tisat.errors import InputError
from tisat.watch.alarm_tracker import Taken
from tisat.watch.liveness import Heard, RollCall
from tisat.watch.monitor import Monitor
from tisat.watch.protocols import Array
from tisat.watch.row_result import RowResult

BATCH = 1024  # windows the detector is asked about at once


def judge_all(items: Sequence[tuple[Any, ...]], *, exact: bool = True, roll: RollCall | None = None) -> list[RowResult]:
    """The results on rows ``(monitor, row, time)`` of monitors of one detector and rule; it is asked about many at once.

    A fourth value of False: the rule learns nothing from the row.

    Their thresholds may differ. A row that cannot be read is that row's outcome (``refused``, with the reason) and
    touches nothing else. Unless ``exact``, a network is asked about all windows in one pass, whose sums may differ in their
    last bits. ``roll`` is told of every row that is taken in, and what it says of other entities goes with the row's result.
    """
    verdicts: list[RowResult] = []
    wave: list[tuple[Monitor, Taken, Array | None]] = []  # (monitor, row, point where it is known)
    windows, asked = np.empty((0, 0, 0)), 0  # room for a wave, and how many of its windows are to be asked about
    waiting: set[int] = set()  # monitors with a row in the wave

    def flush() -> None:
        nonlocal asked
        if not wave:
            return
        first = wave[0][0]
        answers = iter(first.stream.answers(windows[:asked], exact=exact) if asked else ())
        points = []
        for i, (monitor, taken, point) in enumerate(wave):
            points.append(monitor.stream.point(next(answers)) if point is None else point)
            wave[i] = (monitor, taken._replace(deviations=monitor.stream.deviations) if point is None else taken, point)
        scored = first.aggregation.run(np.stack(points))
        for i, (monitor, taken, _) in enumerate(wave):
            row = Scored(scored.points[i : i + 1], scored.scores[i : i + 1], scored.views[i : i + 1])
            verdicts.append(monitor.judge(taken, row))
        wave.clear()
        asked = 0
        waiting.clear()

    for monitor, row, time, *learn in items:
        if len(wave) >= BATCH or (id(monitor) in waiting and monitor.one_at_a_time):
            flush()
        try:
            taken = monitor.take(row, time)
            if learn and not learn[0]:
                taken = taken._replace(learn=False)
        except InputError as error:
            flush()  # so that results stay in order
            verdicts.append(monitor.refuse(str(error), time))
            continue
        if roll is not None and taken.row >= 0:
            told = roll.step(Heard(monitor.name, monitor.time_step, taken.row, taken.stamp))
            taken = taken._replace(silences=taken.silences + told) if told else taken
        point, window = monitor.gather(taken)
        if window is None and taken.filled is not None:
            taken = taken._replace(deviations=getattr(monitor.stream, "deviations", None))
        if window is not None:
            if not len(windows):
                windows = np.empty((min(BATCH, len(items)), *window.shape))
            windows[asked] = window
            asked += 1
        waiting.add(id(monitor))
        wave.append((monitor, taken, point))
    flush()
    return verdicts
