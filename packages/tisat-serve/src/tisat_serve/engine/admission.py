"""Rows as they come, as the log keeps them; or why they are refused.

Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tisat.errors import InputError
from tisat.io.timestamps import Moment, read_time
from tisat_serve.alarms.alarm_log import Policy
from tisat_serve.engine.entities import Entities
from tisat_serve.engine.group import Group
from tisat_serve.store import ROW, Entry, Record
from tisat_serve.structs import Row

LONGEST_NAME = 200
SHOWN = 8  # names of groups in an answer; a folder of models has one for each machine


class Admission:
    """Reads rows for an engine: their entity, group, time and values.

    Parameters
    ----------
    entities : Entities
    policy : Policy
        Says which rows are learned from.
    most : int
        Entities that are watched at most.
    """

    def __init__(self, entities: Entities, policy: Policy, most: int) -> None:
        self._entities, self._policy, self.most = entities, policy, most
        self.accepts: Callable[[str], str] | None = None  # why an entity is not for us; empty where it is

    def read(self, row: Row, now: float, fresh: dict[str, Record]) -> Entry | str:
        """A row as the log keeps it, or why it is refused."""
        cell = self._entities.cells.get(row.entity)
        if cell is not None:
            number, group, dates = cell.id, self._entities.groups[cell.group], cell.dates
        elif row.entity in fresh:
            number, _, name, dates = fresh[row.entity]
            group = self._entities.groups[name]
        else:
            home = self._home(row)
            if isinstance(home, str):
                return home
            number, group, dates = -1, home, None
        try:
            moment = Moment(dates=True, value=int(now * 1e9), offset=0) if row.time is None else read_time(row.time)
            values: object = row.values
            if group.ignore_extra and isinstance(values, dict):
                values = {channel: value for channel, value in values.items() if channel in group.known}
            read = group.read(values)
        except InputError as error:
            return str(error)
        if dates is not None and moment.dates != dates:
            return (
                f"The times of rows must be all dates or all numbers. Got {str(row.time)[:40]!r} after the other kind."
            )
        if number < 0:
            number = self._entities.away.get(row.entity, self._entities.next_id + len(fresh))
            fresh[row.entity] = (number, row.entity, group.name, moment.dates)
        at = int(moment.value) if moment.dates else round(moment.value * 1e9)
        if not -(2**62) < at < 2**63 - 1:
            return f"The time of a row must lie between the years 1824 and 2261. Got {str(row.time)[:40]!r} instead."
        entry = [ROW, number, at, moment.offset, np.ascontiguousarray(read).tobytes()]
        # As the windows stand now: what a row taught is not changed by what somebody says later, nor by a restart.
        learned = not self._policy.pauses or self._policy.learns(row.entity, at)
        return entry if learned else [*entry, 0]

    def _home(self, row: Row) -> Group | str:
        """The group of a new entity, or why it has none."""
        name = row.entity
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            return f"The entity of a row must be a printable name of 1 to {LONGEST_NAME} characters. Got {name[:40]!r} instead."
        if name in self._entities.resting:
            return f"The entity {name!r} must find its group {self._entities.resting[name]!r} in the configuration. It is not there now."
        if self.accepts is not None and (why := self.accepts(name)):
            return why
        if len(self._entities.cells) >= self.most:
            return f"The service must not watch more than {self.most} entities (limits.entities). {name!r} would be one more."
        if row.group:
            if row.group not in self._entities.groups:
                return f"The group of a row must be one of {self._known_groups()}. Got {row.group[:40]!r} instead."
            return self._entities.groups[row.group]
        home = next((group for group in self._entities.groups.values() if group.owns(name)), None)
        return (
            home
            or f"The entity of a row must fit the pattern of a group. {name!r} fits none of {self._known_groups()}."
        )

    def _known_groups(self) -> str:
        """The names of the groups, the first of many."""
        names = list(self._entities.groups)
        return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
