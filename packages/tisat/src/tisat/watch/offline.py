"""The alarms of a whole series: its rows scored, those that wait at its end, and the sentence where no row has a score."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tisat.alarms.alarms import Alarm, Alarms, Tally, alarms_of
from tisat.alarms.patterns import demoted
from tisat.alarms.present_mode import slow
from tisat.alarms.sentences import ROWS, mode_of
from tisat.alarms.series_states import with_states
from tisat.errors import SeriesError, SeriesWarning
from tisat.gap_filling import MAX_GAP, silences, take_in
from tisat.io.local_time import local_seconds
from tisat.series import Series, SeriesLike
from tisat.watch.clock import UNDATED, wrong_pace
from tisat.watch.in_blocks import run_in_blocks
from tisat.watch.protocols import Array, Scorer, check_series
from tisat.watch.training_notes import foreign_note, habits_of
from tisat.watch.training_zone import TrainingZone
from tisat.watch.watch import Watch

MUCH_WARM_UP = 0.1  # share of the rows, from which on it is said


def lengthened(alarms: Alarms, rows: int) -> Alarms:
    """The same alarms with ``rows`` more at the end of which nothing is known yet.

    One that is on stays on.
    """
    unknown = np.full(rows, np.nan)
    return replace(
        alarms,
        scores=np.append(alarms.scores, unknown),
        evidence=np.append(alarms.evidence, unknown),
        statistic=np.append(alarms.statistic, unknown),
        active=np.append(alarms.active, np.zeros(rows, dtype=np.bool_)),
    )


def nothing_judged(series: Series, tally: Tally, silent: Iterable[Any], detector: Scorer) -> str:
    """The sentence about a series of which no row got a score."""
    context = getattr(detector, "_context", lambda: None)()
    at_least = f", more than {context} rows" if context else ""
    of_series = f" {series.name!r}" if series.name else ""
    dead = [
        f"{one.channel} (since {one.since_time if one.since_time is not None else f'row {one.since}'})"
        for one in silent
    ]
    if dead and tally.unusable and detector.traits.partial:
        return (
            f"The series{of_series} must have rows that can be scored. None of its {tally.rows} could be: there is nothing from "
            f"{', '.join(dead[:5])}{f' and {len(dead) - 5} more' * (len(dead) > 5)}. Is it the right file? tisat look FILE shows what is in it."
        )
    if dead and tally.unusable:
        return (
            f"The series{of_series} must have rows that can be scored. None of its {tally.rows} could be: {type(detector).__name__} "
            f"needs every channel, and there is nothing from {', '.join(dead[:5])}. Fix the sensor, fit a model without it, "
            "or use a detector that can do without single channels, such as prism."
        )
    return (
        f"The series{of_series} must have rows that can be scored. None of its {tally.rows} could be: {tally.warming_up} were "
        f"needed to warm up{f' and {tally.unusable} lacked values' * (tally.unusable > 0)}. Give a longer series{at_least}."
    )


def few_judged(series: Series, tally: Tally, detector: Scorer, period: float | None) -> str:
    """The sentence about a series whose warm-up the rows of training could take over, or of which less than half was scored.

    The first warm-up does not count for the latter. Empty where there is nothing to say.
    """
    trained, begun = detector.trained_on_.get("stop"), None if series.timestamps is None else series.timestamps[0]
    after = math.nan
    with contextlib.suppress(ValueError):  # numbers, where training had dates
        if trained is not None and isinstance(begun, np.datetime64):
            after = float((begun - np.datetime64(trained)) / np.timedelta64(1, "s"))
        elif trained is not None and begun is not None:
            after = float(begun) - float(trained)
    continues = period is not None and 0 < after <= MAX_GAP * period and tally.warming_up > MUCH_WARM_UP * tally.rows
    context = getattr(detector, "_context", lambda: None)()
    if not continues and 2 * (tally.judged + tally.refused) >= tally.rows - (context or 0):
        return ""
    parts = [f"{tally.warming_up:,} warm up, at the beginning and after each gap"] * bool(tally.warming_up)
    parts += [f"{tally.unusable:,} lack values"] * bool(tally.unusable) + [f"{tally.refused:,} are left out"] * bool(
        tally.refused
    )
    found = f"{tally.judged:,} of {tally.rows:,} rows could be scored: {', '.join(parts)}."
    if not continues or context is None:
        return found
    return f"{found} The last {context} rows of training in front of them (in one file, or pd.concat) save the first warm-up."


def alarms_of_series(watch: Watch, series: SeriesLike, *, any_period: bool, ignore_extra: bool) -> Alarms:
    """The alarms of a series: :meth:`tisat.Watch.alarms`."""
    calibration = watch.calibration
    raw = watch.read(series) if isinstance(series, str | Path) else series
    checked = check_series(watch.detector, raw, ignore_extra=ignore_extra)
    if not any_period:
        problem = wrong_pace(checked.period, watch.period, whose=type(watch.detector).__name__)
        if problem is not None:
            raise SeriesError(problem)
    dated = getattr(watch.detector, "knows_calendar", False)
    if dated and np.isnan(local_seconds(checked)).any():
        warnings.warn(UNDATED, SeriesWarning, stacklevel=3)
    if note := TrainingZone(watch.detector.trained_on_, dated=dated).note_of(checked):
        warnings.warn(note, SeriesWarning, stacklevel=3)
    if note := foreign_note(watch.detector, checked.values):
        warnings.warn(note, SeriesWarning, stacklevel=3)
    admitted = take_in(checked, period=watch.period, partial=watch.detector.traits.partial)
    traced, deviations = run_in_blocks(watch, checked, admitted)
    silent = tuple(silences(checked, admitted.left_out))
    usable, left_out = int(admitted.usable.sum()), int(admitted.left_out.sum())
    judged = int((~np.isnan(traced.scores)).sum())
    unusable = len(checked) - usable - left_out
    tally = Tally(len(checked), judged, warming_up=usable - judged, unusable=unusable, refused=left_out)
    if judged == 0:
        raise SeriesError(nothing_judged(checked, tally, silent, watch.detector))
    if note := few_judged(checked, tally, watch.detector, watch.period):
        warnings.warn(note, SeriesWarning, stacklevel=3)
    ahead, switches = len(checked) - admitted.unconfirmed_end, getattr(watch.detector, "switches", ())

    def states(found: Sequence[Alarm]) -> tuple[Alarm, ...]:
        told = None if deviations is None else deviations[:ahead]
        limits = getattr(watch.detector, "deviation_limits", None)
        lives = with_states(
            found, told, limits, channels=watch.channels, rearm=watch.rearm_rows, stamp=checked.stamp,
            switches=slow(switches, watch.detector.trained_on_.get("moves_every", ())),
            values=np.where(admitted.usable[:, None], admitted.filled, np.nan),
        )  # fmt: skip
        columns = [channel for channel, _ in switches]

        def before(raised: int) -> Array:
            rows = slice(max(raised - ROWS, 0), raised + 1)
            return np.where(admitted.usable[rows, None], admitted.filled[rows][:, columns], np.nan)

        modes = [mode_of(before(one.raised), switches, watch.channels) for one in lives]
        moded = [replace(one, mode=mode) for one, mode in zip(lives, modes, strict=True)]
        return tuple(demoted(one, watch.patterns, now=ahead) for one in moded)

    found = alarms_of(
        traced._replace(scores=traced.scores[:ahead]),
        rule=watch.rule,
        calibration=calibration,
        series=checked,
        attribution=watch.detector.traits.points_are_channels,
        explain=lambda t: watch.detector.explain(admitted.filled[t], traced.points(slice(t, t + 1))[0]),
        filled=admitted.filled,
        amounts=watch.detector._amounts,
        habits=habits_of(watch.detector),
        tally=tally,
        silences=silent,
        states=states,
    )
    return lengthened(found, admitted.unconfirmed_end) if admitted.unconfirmed_end else found
