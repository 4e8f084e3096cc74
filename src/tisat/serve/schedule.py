"""Refits by the calendar. A scheduled refit only ever proposes: somebody looks at its consequences and takes it, or not."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tisat.errors import TisatError

if TYPE_CHECKING:
    from tisat.serve.service import Service

LOOK = 60.0  # seconds between two looks at the calendar


class Schedule:
    """Proposes a refit for every group whose ``refit`` time has passed since the last one, unless one waits already."""

    def __init__(self) -> None:
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, service: Service) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, args=(service,), name="tisat-schedule", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; a refit that is being made is waited for."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(60.0)

    def _run(self, service: Service) -> None:
        while not self._end.wait(LOOK):
            self.look(service)

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
