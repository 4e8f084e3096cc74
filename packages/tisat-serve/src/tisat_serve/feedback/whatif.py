"""What-if analysis: alarms at another threshold beside those in the log.

It is told from the statistics that were stored when rows were judged. The statistic of ``excess`` and ``threshold`` does not depend on the threshold, so counting runs at or above another one is
exact; where the threshold follows the alarms (:mod:`tisat.alarms.control`), it follows those there would have been, which is exact as long as no label and no maintenance window changed
what counts, and the kept history goes back to the first row. A rule whose alarms change its statistic (``paper``) is run again over its stored evidence; that is exact from the
first row that is kept on, where a stretch begins in the middle it is not, and says so. Only rows that the model of now has
judged are looked at: another model's statistic has another scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat.alarms.calibration import Calibration
from tisat.errors import ParameterError
from tisat.events import events_from_labels
from tisat.utils.types import Flags, Integers
from tisat_serve.engine.row_encoding import ACCEPTED, STATUSES
from tisat_serve.folder.archive import briefs_of, nanoseconds, rows_of
from tisat_serve.structs import AlarmInfo, WhatIf, WhatIfAlarm

if TYPE_CHECKING:
    from tisat.alarms.control import Control
    from tisat_serve.engine.group import Group
    from tisat_serve.views.fleet_view import FleetView

MOST_ALARMS = 2000  # told one by one
FOLLOWED = "The threshold follows the alarms; labels, maintenance windows and rows that are not kept any more are left out here."
RUN_AGAIN = "The alarms of this rule change its statistic: it was run again over the stored evidence."
Raised = dict[str, list[tuple[float, float | None]]]  # by entity: when it is raised and cleared, seconds


@dataclass(frozen=True)
class WhatIfComparison:
    """A comparison."""

    book: dict[str, list[AlarmInfo]]  # of each entity, in order of time
    alarms: list[WhatIfAlarm]  # there would have been
    avoided: list[AlarmInfo]  # of the book, that would not have been
    rows: int


def book_of(view: FleetView, names: list[str], start: float | None, stop: float | None) -> dict[str, list[AlarmInfo]]:
    """The statistical alarms of entities, in order of time."""
    found = {name: view.alarms(entity=name, start=start, stop=stop, sort="statistic", limit=10_000) for name in names}
    return {name: sorted(alarms, key=lambda one: one.raised) for name, alarms in found.items()}


def compare_alarms(book: dict[str, list[AlarmInfo]], raised: Raised, rows: int) -> WhatIfComparison:
    """Alarms that overlap are the same one."""
    alarms: list[WhatIfAlarm] = []
    avoided: list[AlarmInfo] = []
    for name, spans in raised.items():
        met: set[str] = set()
        for begin, end in spans:
            was = [
                match for match in book[name] if match.raised <= (end or np.inf) and (match.cleared or np.inf) >= begin
            ]
            met.update(match.id for match in was)
            match = was[0] if was else None
            delay = None if match is None else begin - match.raised
            alarms.append(
                WhatIfAlarm(name, begin, end, match.id if match else None, match.label if match else "unmarked", delay)
            )
        avoided += [match for match in book[name] if match.id not in met]
    return WhatIfComparison(book, alarms, avoided, rows)


def sentences_of(found: WhatIfComparison) -> list[str]:
    """The comparison in words: "would have avoided 3 of 4", "2 min later"."""
    before: list[Any] = [one for of in found.book.values() for one in of]
    lines = [f"{len(found.alarms)} alarm{'s' * (len(found.alarms) != 1)} instead of {len(before)}."]
    for words, verb, name in ((("false", "new normal"), "avoided", "false"), (("true",), "missed", "true")):
        of = sum(one.label in words for one in before)
        if of:
            lines.append(
                f"It would have {verb} {sum(one.label in words for one in found.avoided)} of {of} alarms marked {name}."
            )
    late = [one.delay for one in found.alarms if one.label == "true" and one.delay and one.delay > 0]
    if late:
        lines.append(
            f"{len(late)} true alarm{'s' * (len(late) != 1)} would have come later, by {duration_words(max(late))} at most."
        )
    new = sum(one.was is None for one in found.alarms)
    if new:
        lines.append(
            f"{new} of them {'is' if new == 1 else 'are'} not in the book: nobody has looked at {'it' if new == 1 else 'them'}."
        )
    return lines


def duration_words(seconds: float) -> str:
    """Format a duration.

    Examples
    --------
    >>> duration_words(42), duration_words(120), duration_words(9000)
    ('42 s', '2 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.3g} min" if seconds < 5400 else f"{seconds / 3600:.3g} h"


def active_at(
    group: Group, view: FleetView, entity: str, threshold: float, start: int, stop: int, control: Control | None = None
) -> tuple[Integers, Flags, int]:
    """Times of the accepted rows of an entity, whether the alarm would have been on, and how many of them were judged."""
    if control is not None:
        brief = briefs_of(view.engine.entities, entity, same_model=True)
        brief = brief.select(brief.status < ACCEPTED)
        active = control.replay(brief.statistic, threshold)  # from the first row on: it depends on the alarms before
        inside = (brief.times >= start) & (brief.times < stop)
        return brief.times[inside], active[inside], int((brief.status[inside] == 0).sum())
    if not group.watch.rule.feeds_back:
        brief = briefs_of(view.engine.entities, entity, start, stop, same_model=True)
        is_active = brief.status < ACCEPTED
        with np.errstate(invalid="ignore"):
            return brief.times[is_active], brief.statistic[is_active] >= threshold, int((brief.status == 0).sum())
    brief, body = rows_of(view.engine.entities, entity, start, stop, same_model=True)
    is_active = brief.status < ACCEPTED
    trace = group.watch.rule.accumulate(body.evidence[is_active], threshold=threshold)
    return brief.times[is_active], np.asarray(trace.active, dtype=np.bool_), int((brief.status == 0).sum())


def what_if(
    view: FleetView,
    *,
    entity: str = "",
    group: str = "",
    threshold: float | None = None,
    budget: str | None = None,
    start: float | None = None,
    stop: float | None = None,
) -> WhatIf:
    """Compare another threshold or budget on stored history with the log."""
    engine = view.engine
    home = engine.entities.group(engine.entities.get(entity).group if entity else group)
    names = [entity] if entity else engine.entities.names_in(home.name)
    number = engine.cells[entity].calibration if entity else home.calibration
    calibration, note = _calibrated(home.watches[number].calibration, home, threshold, budget)
    target = calibration.threshold if threshold is None else float(threshold)
    first, last = nanoseconds(start, stop)
    control = replace(calibration, threshold=target).control
    alarms_of: Raised = {}
    rows = 0
    for name in names:
        times, active, judged = active_at(home, view, name, target, first, last, control)
        rows += judged
        spans = events_from_labels(active.astype(np.int64))
        alarms_of[name] = [
            (float(times[a]) * 1e-9, float(times[b]) * 1e-9 if b < len(times) else None) for a, b in spans
        ]
    comparison = compare_alarms(book_of(view, names, start, stop), alarms_of, rows)
    labels = [one.label for one in comparison.avoided]
    followed = control is not None and not all(_replayable(view, name) for name in names)
    exact = not home.watch.rule.feeds_back and not followed
    return WhatIf(
        threshold=target,
        budget=note,
        exact=exact,
        rows=rows,
        allowed=rows / calibration.target,
        before=sum(map(len, comparison.book.values())),
        alarms=comparison.alarms[:MOST_ALARMS],
        avoided=[one.id for one in comparison.avoided],
        lost_true=labels.count("true"),
        avoided_false=labels.count("false") + labels.count("new normal"),
        sentences=[*sentences_of(comparison), *([] if exact else [FOLLOWED if followed else RUN_AGAIN])],
    )


def _replayable(view: FleetView, entity: str) -> bool:
    """Check whether the alarms of an entity follow from its kept statistic alone."""
    engine = view.engine
    cell = engine.entities.get(entity)
    if engine.policy.unlearned(entity):
        return False
    if engine.store.read(
        "SELECT 1 FROM labels JOIN alarms ON alarms.id = labels.alarm WHERE entity = ? AND word IN ('true', 'expected')", (entity,)
    ):  # fmt: skip
        return False
    counts = engine.groups[cell.group].fleet_of(cell.calibration)[entity].counts
    brief = briefs_of(engine.entities, entity, same_model=True)
    return int((brief.status < ACCEPTED).sum()) == sum(counts[STATUSES[code]] for code in range(ACCEPTED))


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
    if now.normal is None:
        return home.watch.recalibrated(budget).calibration, budget
    return now.recalibrated(budget), budget
