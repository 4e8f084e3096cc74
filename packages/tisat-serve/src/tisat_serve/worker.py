"""A part of the service that works in a thread of its own: how sources, sinks and the calendar begin, end and complain."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, ClassVar

from tisat.errors import TisatError
from tisat.utils.types import JsonDict

if TYPE_CHECKING:
    from tisat_serve.service import Service
    from tisat_serve.store import Mark
    from tisat_serve.structs import Row


class ThreadedPart:
    """A :class:`tisat_serve.service.Part` whose ``_run`` goes on until ``_end`` is set.

    A subclass calls ``super().__init__()``; what is to be done before the thread begins, and after it ended, it writes in ``_begin`` and
    ``_ended``.
    """

    patience: ClassVar[float] = 10.0  # seconds its end is waited for
    name: str

    def __init__(self) -> None:
        self.error = ""  # what is wrong now
        self._end, self._wake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._service: Service

    def start(self, service: Service) -> None:
        """Begin."""
        self._service = service
        self._begin()
        self._thread = threading.Thread(target=self._run, name=f"tisat-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._end.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(self.patience)
            self._ended()

    def _begin(self) -> None:
        return

    def _run(self) -> None:
        raise NotImplementedError

    def _ended(self) -> None:
        return

    def _judge(self, rows: list[Row], mark: Mark) -> bool:
        """Have rows judged with how far they were read, however long that takes.

        False where the service ends before.
        """
        while True:
            try:
                self._service.ingest(rows, mark)
                self.error = ""
                return True
            except TisatError as error:  # busy, or the disk is full: nothing was marked as read
                self._trouble(str(error))
                if self._end.wait(0.2):
                    return False

    def _trouble(self, sentence: str) -> None:
        """Say what is wrong, once for as long as it stays so."""
        if sentence != self.error:
            self._service.say(f"{self.name}: {sentence}")
        self.error = sentence


class ListeningPart(ThreadedPart):
    """One that is woken when an alarm is raised, joined, grown, worsened or cleared.

    What is left at its end is told after the next start.
    """

    def _begin(self) -> None:
        self._service.engine.listeners.append(self._listen)

    def _ended(self) -> None:
        with contextlib.suppress(ValueError):  # stopped twice
            self._service.engine.listeners.remove(self._listen)

    def _listen(self, event: JsonDict) -> None:
        if event["what"] in ("raised", "joined", "grown", "worsened", "cleared"):
            self._wake.set()
