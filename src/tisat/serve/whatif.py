"""What another threshold would have done, from the statistics that were stored when rows were judged.

The statistic of ``excess`` and ``threshold`` does not depend on the threshold, so counting runs at or above another one is
exact. A rule whose alarms change its statistic (``paper``) is run again over its stored evidence; that is exact from the
first row that is kept on, where a stretch begins in the middle it is not, and says so. Only rows that the model of now has
judged are looked at: another model's statistic has another scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tisat._types import Flags, Integers
from tisat.errors import ParameterError
from tisat.events import events_from_labels
from tisat.sequential.calibration import Calibration
from tisat.serve.archive import briefs_of, nanoseconds, rows_of
from tisat.serve.comparison import Raised, book_of, compared, sentences_of
from tisat.serve.packing import ACCEPTED
from tisat.serve.structs import WhatIf

if TYPE_CHECKING:
    from tisat.serve.group import Group
    from tisat.serve.view import View

MOST_ALARMS = 2000  # told one by one
RUN_AGAIN = "The alarms of this rule change its statistic: it was run again over the stored evidence."


def active_at(group: Group, view: View, entity: str, threshold: float, start: int, stop: int) -> tuple[Integers, Flags]:
    """Times of the judged rows of an entity, and whether the alarm would have been on."""
    if not group.watch.rule.feeds_back:
        brief, _ = briefs_of(view.engine, entity, start, stop, same_model=True)
        taken = brief.status < ACCEPTED
        with np.errstate(invalid="ignore"):
            return brief.times[taken], brief.statistic[taken] >= threshold
    brief, body = rows_of(view.engine, entity, start, stop, same_model=True)
    taken = brief.status < ACCEPTED
    trace = group.watch.rule.accumulate(body.evidence[taken], threshold=threshold)
    return brief.times[taken], np.asarray(trace.active, dtype=np.bool_)


def what_if(
    view: View,
    *,
    entity: str = "",
    group: str = "",
    threshold: float | None = None,
    budget: str | None = None,
    start: float | None = None,
    stop: float | None = None,
) -> WhatIf:
    """What another threshold, or another budget, would have done on the stored history of one entity or of a group."""
    engine = view.engine
    home = engine.group_of(engine.cell_of(entity).group if entity else group)
    names = [entity] if entity else engine.names_of(home.name)
    number = engine.cells[entity].calibration if entity else home.calibration
    calibration, said = _calibrated(home.watches[number].calibration, home, threshold, budget)
    wanted = calibration.threshold if threshold is None else float(threshold)
    first, last = nanoseconds(start, stop)
    raised: Raised = {}
    rows = 0
    for name in names:
        times, active = active_at(home, view, name, wanted, first, last)
        rows += len(times)
        spans = events_from_labels(active.astype(np.int64))
        raised[name] = [(float(times[a]) * 1e-9, float(times[b]) * 1e-9 if b < len(times) else None) for a, b in spans]
    found = compared(book_of(view, names, start, stop), raised, rows)
    alarms, avoided = found.alarms, found.avoided
    lost = sum(one.label == "true" for one in avoided)
    false = sum(one.label in ("false", "new normal") for one in avoided)
    before = sum(map(len, found.book.values()))
    exact = not home.watch.rule.feeds_back
    return WhatIf(
        threshold=wanted,
        budget=said,
        exact=exact,
        rows=rows,
        allowed=rows / calibration.target,
        before=before,
        alarms=alarms[:MOST_ALARMS],
        avoided=[one.id for one in avoided],
        lost_true=lost,
        avoided_false=false,
        sentences=[*sentences_of(found), *([] if exact else [RUN_AGAIN])],
    )


def _calibrated(
    now: Calibration, home: Group, threshold: float | None, budget: str | None
) -> tuple[Calibration, str | None]:
    if threshold is not None and budget is not None:
        raise ParameterError("What-if must be asked about a threshold or a budget. Got both.")
    if threshold is not None:
        if not np.isfinite(threshold) or threshold <= 0:
            raise ParameterError(f"The threshold must be a number above 0. Got {threshold!r} instead.")
        return now, None
    if budget is None:
        return now, now.budget
    if now.nominal is None:
        return home.watch.recalibrated(budget).calibration, budget
    return now.recalibrated(budget), budget
