"""Parts of the alarms of a whole series: rows that wait at its end, and the sentence where no row has a score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tisat.alarms.alarms import Alarms, Tally
from tisat.series import Series
from tisat.watch.protocols import Scorer


def lengthened(alarms: Alarms, rows: int) -> Alarms:
    """The same alarms with ``rows`` more at the end of which nothing is known yet; one that is on stays on."""
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
    named = f" {series.name!r}" if series.name else ""
    dead = [
        f"{one.channel} (since {one.since_time if one.since_time is not None else f'row {one.since}'})"
        for one in silent
    ]
    if dead and tally.unusable:
        return (
            f"The series{named} must have rows that can be judged. None of its {tally.rows} could be: {type(detector).__name__} "
            f"needs every channel, and there is nothing from {', '.join(dead[:5])}. Fix the sensor, fit a model without it, "
            "or use a detector that can do without single channels, such as prism."
        )
    return (
        f"The series{named} must have rows that can be judged. None of its {tally.rows} could be: {tally.warming_up} were "
        f"needed to warm up and {tally.unusable} were unusable. Give a longer series."
    )
