"""One model follows another for an entity: the new monitor begins with the last rows that were kept, alarms are handed over in the book.

What a monitor of the new model knows of the past is the last rows of the entity's history, so it comes out the same
wherever this happens again after a kill.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tisat.watch.monitor import Monitor
from tisat_serve.alarms.alarm_log import Event, event_of_alarm
from tisat_serve.engine.row_encoding import ACCEPTED
from tisat_serve.folder.archive import rows_of, warm_up_start

if TYPE_CHECKING:
    from tisat_serve.engine.entities import Entities
    from tisat_serve.engine.entity_state import EntityState
    from tisat_serve.engine.group import Group


def switch_model(entities: Entities, cell: EntityState, group: Group, calibration: int) -> list[Event]:
    """Put a monitor of another model in an entity's place.

    What is to be written into the book.

    Its rows must be in the history already (:meth:`tisat_serve.engine.saver.Saver.save`).
    """
    before = group.fleet_of(cell.calibration)
    old = before.monitors.pop(cell.name)
    watch = group.watches[calibration]
    start = warm_up_start(entities.store, cell.id, watch)
    brief, body = rows_of(entities, cell.name, min(start, cell.newest))
    taken = brief.status < ACCEPTED
    times = brief.times[taken].tolist()
    new = Monitor(watch, name=cell.name)
    new.extend(list(body.values[taken]), [cell.moment(at) for at in times])
    group.fleet_of(calibration).monitors[cell.name] = new
    cell.alarm = new.alarm
    events = []
    at = times[-1] if times else 0
    for alarm in (*old.ongoing, *filter(None, [old.alarm])):  # whoever was told that it is on is told that it is over
        over = replace(alarm, cleared=old.rows, cleared_time=old.stamp, state="cleared")
        events.append(event_of_alarm(over, group.print_of(cell.calibration), group.name, cell.seq, at))
    for alarm in (*new.ongoing, *filter(None, [new.alarm])):
        event = event_of_alarm(alarm, group.print_of(calibration), group.name, cell.seq, at)
        events.append(replace(event, what="raised"))  # nobody was told of it yet, whatever has joined it
    return events
