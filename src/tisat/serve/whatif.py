"""What another threshold would have done, from the statistics that were stored when rows were judged.

The statistic of ``excess`` and ``threshold`` does not depend on the threshold, so counting runs at or above another one is
exact. A rule whose alarms change its statistic (``paper``) is run again over its stored evidence; that is exact from the
first row that is kept on, where a stretch begins in the middle it is not, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tisat.errors import InputError, ParameterError
from tisat.events import events_from_labels
from tisat.sequential.calibration import Calibration
from tisat.serve.archive import FOREVER, briefs_of, rows_of
from tisat.serve.packing import ACCEPTED
from tisat.serve.structs import WhatIf, WhatIfAlarm

if TYPE_CHECKING:
    from tisat.serve.group import Group
    from tisat.serve.view import View

MOST_ALARMS = 2000  # told one by one


def active_at(
    group: Group, view: View, entity: str, threshold: float, start: int, stop: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Times of the judged rows of an entity, and whether the alarm would have been on."""
    if not group.watch.rule.feeds_back:
        brief, _ = briefs_of(view.engine, entity, start, stop)
        taken = brief.status < ACCEPTED
        with np.errstate(invalid="ignore"):
            return brief.times[taken], brief.statistic[taken] >= threshold
    brief, body = rows_of(view.engine, entity, start, stop)
    taken = brief.status < ACCEPTED
    trace = group.watch.rule.accumulate(body.evidence[taken], threshold=threshold)
    return brief.times[taken], np.asarray(trace.active, dtype=np.bool_)


def what_if(
    view: View,
    *,
    entity: str,
    group: str,
    threshold: float | None,
    budget: str | None,
    start: float | None,
    stop: float | None,
) -> WhatIf:
    """See :meth:`tisat.serve.view.View.what_if`."""
    engine = view.engine
    if entity and entity not in engine.cells:
        raise InputError(f"The service must know the entity. Got {entity[:200]!r} instead.")
    home = engine.groups.get(engine.cells[entity].group if entity else group or next(iter(engine.groups)))
    if home is None:
        raise InputError(f"The group must be one of {', '.join(engine.groups)}. Got {group[:200]!r} instead.")
    names = [entity] if entity else [name for name, cell in engine.cells.items() if cell.group == home.name]
    number = engine.cells[entity].calibration if entity else home.calibration
    calibration, said = _calibrated(home.watches[number].calibration, home, threshold, budget)
    wanted = calibration.threshold if threshold is None else float(threshold)
    first = -FOREVER if start is None else int(start * 1e9)
    last = FOREVER if stop is None else int(stop * 1e9)
    book: dict[str, list[Any]] = {}
    for name in names:
        found = view.alarms(entity=name, start=start, stop=stop, sort="statistic", limit=10_000)
        book[name] = sorted(found, key=lambda one: one.raised)
    alarms: list[WhatIfAlarm] = []
    avoided: list[Any] = []
    rows = 0
    for name in names:
        times, active = active_at(home, view, name, wanted, first, last)
        rows += len(times)
        met: set[str] = set()
        for begin, end in events_from_labels(active.astype(np.int64)):
            raised = float(times[begin]) * 1e-9
            cleared = float(times[end]) * 1e-9 if end < len(times) else None
            was = [one for one in book[name] if one.raised <= (cleared or np.inf) and (one.cleared or np.inf) >= raised]
            met.update(one.id for one in was)
            one = was[0] if was else None
            delay = None if one is None else raised - one.raised
            alarms.append(WhatIfAlarm(name, raised, cleared, one and one.id, one.label if one else "unmarked", delay))
        avoided += [one for one in book[name] if one.id not in met]
    lost = sum(one.label == "true" for one in avoided)
    false = sum(one.label in ("false", "new normal") for one in avoided)
    before = sum(map(len, book.values()))
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
        sentences=_sentences(book, alarms, avoided, exact=exact),
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


def _sentences(book: dict[str, list[Any]], alarms: list[WhatIfAlarm], avoided: list[Any], *, exact: bool) -> list[str]:
    before = [one for found in book.values() for one in found]
    lines = [f"{len(alarms)} alarm{'s' * (len(alarms) != 1)} instead of {len(before)}."]
    for words, verb, name in ((("false", "new normal"), "avoided", "false"), (("true",), "missed", "true")):
        of = sum(one.label in words for one in before)
        if of:
            lines.append(
                f"It would have {verb} {sum(one.label in words for one in avoided)} of {of} alarms marked {name}."
            )
    delays = [one.delay for one in alarms if one.label == "true" and one.delay]
    late = [delay for delay in delays if delay > 0]
    if late:
        lines.append(f"{len(late)} true alarms would have come later, by {max(late):.0f} seconds at most.")
    if not exact:
        lines.append("The alarms of this rule change its statistic: it was run again over the stored evidence.")
    return lines
