"""One file, no normal stretch at hand: learn from and score the same rows, in blocks, none by a model that has seen it.

The file is cut into contiguous blocks. Rows that stand out are found first (:mod:`tisat.watch.contaminated`); then the alarms of each block
are raised by a watch fitted on the other blocks without them. It is for looking back at history: the model of a block has seen rows that
come after it, so what a monitor would have said at the time is :func:`tisat.backtest`'s business.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from tisat import registry
from tisat.alarms.alarms import Alarm, Alarms, Tally
from tisat.alarms.budget import BudgetLike
from tisat.errors import CalibrationWarning, SeriesError
from tisat.events import events_from_labels
from tisat.gap_filling import silences, take_in
from tisat.io.counters import counters_of, difference
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.parameters import clone
from tisat.utils.progress import progress
from tisat.watch.contaminated import LEAD, ROUNDS, LeftOut, blocks_for, folds_of, kept_rows, too_short
from tisat.watch.protocols import Array, Scorer, WatchSettings
from tisat.watch.walk_forward import moved
from tisat.watch.watch import Watch


def scan(
    series: SeriesLike,
    detector: str | Scorer = registry.DEFAULT,
    *,
    budget: BudgetLike | None = None,
    **settings: Unpack[WatchSettings],
) -> Alarms:
    """Raise the alarms of a series by models that learn from the same series, each row by one that has not seen it.

    Parameters
    ----------
    series : Series, array, dataframe or file path
        Mostly normal. Labels are not read.
    detector : str or Detector
        Not fitted.
    budget : str, float or timedelta, optional
        As :class:`tisat.Watch` takes it.
    **settings
        Of :class:`tisat.Watch`.

    Returns
    -------
    Alarms
        Of the whole series, the statistic of each block in units in which all have the same threshold. Notes of its calibration
        say what was left out of training.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(4000, 2))
    >>> rows[3000:3004] += 30.0
    >>> [alarm.raised for alarm in scan(rows, "last-value", budget="1/4000 rows")][0]
    3000
    """
    return scan_series(series, budget=budget, detector=detector, expected=False, **settings)[0]


def scan_series(
    series: SeriesLike,
    *,
    budget: BudgetLike | None = None,
    detector: str | Scorer = registry.DEFAULT,
    expected: bool = True,
    **settings: Unpack[WatchSettings],
) -> tuple[Alarms, Series, tuple[Array, Array]]:
    """The alarms of :func:`scan`, the series they were raised on, and what was expected of its rows, with the spread.

    ``expected=False`` leaves the last out, NaN: it takes a fourth of the time.
    """
    checked = as_series(series, whose="scan").without_labels()
    base: Any = registry.resolve(detector)() if isinstance(detector, str) else detector
    registry.check_detector(base, whose="scan")
    counters = settings.get("counters")
    passed: WatchSettings = {**settings, "counters": ()}
    names = counters_of([checked]) if counters is None else tuple(counters)
    whole = difference(checked, names, period=checked.period) if names else checked
    count = blocks_for(base)
    with progress("scanning", total=(ROUNDS + 1) * count, lines=True) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        keep = kept_rows(base, [whole], bar, whose="scan")[0]
        parts = []
        for fold in folds_of([whole], [keep], count):
            _, first, last = fold.here[0]
            watch = Watch(clone(base), budget=budget, **passed)
            try:
                watch.fit(list(fold.rest))
            except SeriesError:
                raise too_short(base, len(whole), whose="scan") from None
            before = min(first, LEAD)
            rows = whole[first - before : last]
            try:
                alarms = watch.alarms(rows, any_period=True)
            except SeriesError:  # not a row of the block can be scored
                alarms = None
            middle = watch.detector.expected(rows) if expected else None
            parts.append((first, last, before, watch, alarms, middle))
            bar.advance(note=f"rows {first} to {last}")
    out = ~keep
    left = LeftOut(int(out.sum()), len(whole), len(events_from_labels(out)))
    return _joined(whole, parts, str(left)), whole, _expected(whole, parts)


def _joined(whole: Series, parts: list[Any], note: str) -> Alarms:
    """One record of all blocks, at the threshold of the first that has one."""
    scored = [one for one in parts if one[4] is not None]
    if not scored:
        raise SeriesError(
            f"The series given to scan must have rows that can be scored. None of its {len(whole)} could be."
        )
    calibration = scored[0][3].calibration
    arrays = {name: np.full(len(whole), np.nan) for name in ("scores", "statistic", "thresholds")}
    evidence, active = np.full((len(whole), *scored[0][4].evidence.shape[1:]), np.nan), np.zeros(len(whole), dtype=bool)
    joined: list[Alarm] = []
    for first, last, before, watch, alarms, _ in scored:
        unit = calibration.threshold / watch.calibration.threshold
        arrays["scores"][first:last] = alarms.scores[before:]
        arrays["statistic"][first:last] = unit * alarms.statistic[before:]
        in_force = (
            alarms.thresholds if len(alarms.thresholds) else np.full(len(alarms.scores), watch.calibration.threshold)
        )
        arrays["thresholds"][first:last] = unit * np.resize(in_force, len(alarms.scores))[before:]
        if alarms.evidence.shape[1:] == evidence.shape[1:]:
            evidence[first:last] = alarms.evidence[before:]
        active[first:last] = alarms.active[before:]
        for alarm in alarms:
            if alarm.raised >= before:
                here = moved(alarm, first - before)
                joined.append(here if last == len(whole) else _ended(here, last, whole))
    admitted = take_in(whole, period=whole.period, partial=scored[0][3].detector.traits.partial)
    judged, usable, lost = (
        int(np.isfinite(arrays["scores"]).sum()),
        int(admitted.usable.sum()),
        int(admitted.left_out.sum()),
    )
    tally = Tally(
        len(whole), judged, warming_up=max(usable - judged, 0), unusable=len(whole) - usable - lost, refused=lost
    )
    return Alarms(
        tuple(joined), arrays["scores"], evidence, arrays["statistic"], active,
        replace(calibration, notes=(*calibration.notes, note)), tally, tuple(silences(whole, admitted.left_out)), arrays["thresholds"],
        timestamps=whole.timestamps,
    )  # fmt: skip


def _ended(alarm: Alarm, last: int, series: Series) -> Alarm:
    """An alarm that is still on at the end of a block ends there: the next block has a model of its own."""
    if alarm.cleared is not None:
        return alarm
    return replace(alarm, cleared=last, cleared_time=series.stamp(last), state="cleared")


def _expected(whole: Series, parts: list[Any]) -> tuple[Array, Array]:
    shape = (len(whole), whole.n_channels)
    middle, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    for first, last, before, _, _, told in parts:
        if told is not None:
            middle[first:last], spread[first:last] = told[0][before:], told[1][before:]
    return middle, spread
