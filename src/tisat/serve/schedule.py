"""Refits by the calendar. A scheduled refit only ever proposes: somebody looks at its consequences and takes it, or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tisat.errors import TisatError
from tisat.serve.part import ThreadedPart

if TYPE_CHECKING:
    from tisat.serve.service import Service

LOOK = 60.0  # seconds between two looks at the calendar


class Schedule(ThreadedPart):
    """Proposes a refit for every group whose ``refit`` time has passed since the last one, unless one waits already."""

    name = "schedule"
    patience: ClassVar[float] = 60.0  # a refit that is being made is waited for

    def _run(self) -> None:
        while not self._end.wait(LOOK):
            self.look(self._service)

    def look(self, service: Service) -> list[int]:
        """Make what is due; the numbers of the proposals."""
        made = []
        engine = service.engine
        for group in list(engine.groups.values()):
            if group.refit is None or not any(cell.group == group.name for cell in list(engine.cells.values())):
                continue
            query = "SELECT coalesce(max(at), 0), coalesce(sum(state = 'open'), 0) FROM proposals WHERE grp = ? AND document LIKE '%\"kind\": \"refit\"%'"
            last, waiting = engine.store.read(query, (group.name,))[0]
            begun = engine.store.read("SELECT min(at) FROM calibrations WHERE grp = ?", (group.name,))[0][0] or 0.0
            if waiting or engine.clock() - max(last, begun) < group.refit:
                continue
            try:
                made.append(service.people.refit(group=group.name, author="tisat", reason="scheduled").id)
            except TisatError as error:
                service.say(f"{group.name}: the scheduled refit was not made. {error}")
        return made
