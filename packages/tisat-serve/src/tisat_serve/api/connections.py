"""Bound how long a connection may take to say what it wants, and how many may wait at once."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADER_SECONDS = 10.0  # for the head of a request, from the connection or from its first byte
MOST_WAITING = 500  # connections whose head is not complete; of more, the oldest is closed

_waiting: dict[Any, None] = {}  # in order of age


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """HTTP as uvicorn speaks it, with a time limit for the head of a request.

    A client that sends half a header and waits (slowloris) is closed after :data:`HEADER_SECONDS`. Where more than
    :data:`MOST_WAITING` do so at once, the oldest goes first: a request that is sent whole is never turned away for them.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: object) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Take what came; wait on where it is no whole head yet."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._disarm()
        elif self._timer is None:
            self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._disarm()
        super().connection_lost(exc)

    def _arm(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._expire)
        _waiting[self] = None
        if len(_waiting) > MOST_WAITING:
            next(iter(_waiting))._expire()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        _waiting.pop(self, None)

    def _expire(self) -> None:
        self._disarm()
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()
