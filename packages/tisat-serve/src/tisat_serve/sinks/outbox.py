"""The outbox: what is to be sent was written in the same transaction as the alarm, and is sent until somebody takes it.

Each sink has a worker, a queue and an error of its own: one that does not answer delays no other and is named.
At least once: a message whose answer was lost is sent again, with the same key.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import threading
import time as clocks
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from tisat.errors import InputError
from tisat.utils.extras import require
from tisat.utils.types import JsonDict
from tisat_serve.http_client import ask, check_address, check_authority
from tisat_serve.sinks.message import Message, message_of_all
from tisat_serve.worker import ListeningPart

if TYPE_CHECKING:
    from tisat_serve.service import Service

PATIENCE = 3 * 86400.0  # seconds after which a message nobody takes is given up
LONGEST_WAIT = 3600.0
TIMEOUT = 10.0
LINGER = 3.0  # seconds the end waits for workers that are sending; what they send is sent again
TOGETHER = 10.0  # seconds for which a message to people waits for others that began together


class Sink(Protocol):
    """A receiver of messages; ``together``: seconds within which they are merged.

    One with ``start(service)`` and ``stop()`` is told when sending begins and ends.
    """

    name: str

    def send(self, message: Message) -> None:
        """Tell; any error means that it was not taken."""


class Webhook:
    """A POST of the message as JSON, signed: ``X-Tisat-Signature: sha256=HMAC(secret, timestamp + "." + body)``."""

    def __init__(
        self,
        name: str,
        url: str,
        secret: str = "",
        *,
        together: float = 0.0,
        headers: Mapping[str, str] | None = None,
        ca: str | None = None,
    ) -> None:
        check_address(url, "The url of a webhook")
        self.name, self.url, self._secret, self.together = name, url, secret, together
        self._headers, self._ca = dict(headers or {}), check_authority(ca)

    def send(self, message: Message) -> None:
        """See :class:`Sink`."""
        body = msgspec.json.encode(message)
        stamp = str(int(clocks.time()))
        headers = {"Content-Type": "application/json", "X-Tisat-Timestamp": stamp, "Idempotency-Key": message.key}
        if self._secret:
            headers["X-Tisat-Signature"] = signature(self._secret, stamp, body)
        ask(self.url, {**headers, **self._headers}, body, timeout=TIMEOUT, ca=self._ca)


def signature(secret: str, stamp: str, body: bytes) -> str:
    """Signature of a webhook, for the receiver to compare.

    Examples
    --------
    >>> signature("key", "0", b"{}")[:14]
    'sha256=7314351'
    """
    return "sha256=" + hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class Apprise:
    """Mail, Slack, Teams and a hundred others, by their apprise address."""

    def __init__(self, name: str, urls: Sequence[str], *, together: float = TOGETHER) -> None:
        apprise = require("apprise", whose="A sink of kind 'apprise'")
        self.name, self.together = name, together
        self._apprise = apprise.Apprise()
        for url in urls:
            if not self._apprise.add(url):
                raise InputError(
                    f"The address of an apprise sink must be one apprise knows. Got {url.partition(':')[0]!r}://... instead."
                )

    def send(self, message: Message) -> None:
        """See :class:`Sink`."""
        kind = "success" if message.event == "cleared" else "warning"
        if not self._apprise.notify(
            title=message.title,
            body=message.text if message.alarms else f"{message.text}\n{message.url}",
            notify_type=kind,
        ):
            raise OSError("apprise could not deliver to every address")


class SinkWorker:
    """Sends what waits in the outbox for one sink, in a thread of its own."""

    def __init__(self, sink: Sink, end: threading.Event) -> None:
        self.sink, self._end = sink, end
        self.wake = threading.Event()
        self.sent = self.failed = self.given_up = 0
        self.error = ""  # what is wrong now
        self._thread: threading.Thread | None = None
        self._service: Service

    def start(self, service: Service) -> None:
        """Begin."""
        self._service = service
        getattr(self.sink, "start", lambda _: None)(service)
        kept = "SELECT error FROM outbox WHERE sink = ? AND error != '' ORDER BY id DESC LIMIT 1"
        self.error = next((error for (error,) in service.engine.store.read(kept, (self.sink.name,))), "")
        self._thread = threading.Thread(target=self._run, name=f"tisat-sink-{self.sink.name}", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end, not longer than so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)
            with contextlib.suppress(Exception):  # whatever a broker's client makes of its end
                getattr(self.sink, "stop", lambda: None)()

    def _run(self) -> None:
        while not self._end.is_set():
            self.wake.clear()
            try:
                self.flush()
            except Exception as error:  # a disk that is full, a store that is busy: later again
                self.failed += 1
                self.error = f"{type(error).__name__}: {error}"
            self.wake.wait(1.0)

    def flush(self) -> None:
        """Send what is due.

        What began together goes as one message to a sink that wants it so.
        """
        service, now = self._service, clocks.time()
        store = service.engine.store
        query = "SELECT * FROM outbox WHERE sink = ? AND due <= ? ORDER BY id LIMIT 1000"
        for records in self._together(store.records(query, (self.sink.name, now)), now):
            if self._end.is_set():
                return
            first = records[0]
            error = ""
            try:
                ids, then = ([record[name] for record in records] for name in ("alarm", "body"))
                self.sink.send(message_of_all(service.view, ids, first["event"], service.settings.url, then))
            except Exception as problem:  # whatever the server does, the message is kept
                error = f"{type(problem).__name__}: {str(problem)[:300]}"
                if error != self.error and not self._end.is_set():
                    service.say(f"{self.sink.name}: a message could not be sent and is kept: {error}")
            if self._end.is_set() and error:
                return  # the store may be closed by now; the message is in it
            recovered, self.error = self.error and not error, error
            late = now - first["at"] > PATIENCE
            with store.writing() as write:
                for record in records:
                    if not error or late:
                        write.execute("DELETE FROM outbox WHERE id = ?", (record["id"],))
                    else:
                        tries = first["tries"] + 1  # they stay together
                        write.execute(
                            "UPDATE outbox SET due = ?, tries = ?, error = ? WHERE id = ?",
                            (now + min(2.0**tries, LONGEST_WAIT), tries, error, record["id"]),
                        )
                if recovered:  # what waits for its next try need not wait longer
                    write.execute("UPDATE outbox SET due = ? WHERE sink = ?", (now, self.sink.name))
            self.sent += not error
            self.failed += bool(error)
            self.given_up += bool(error) and late

    def _together(self, due: list[JsonDict], now: float) -> list[list[JsonDict]]:
        """Group records that go as one message."""
        wait = getattr(self.sink, "together", 0.0)
        batches: list[list[JsonDict]] = []
        last: dict[str, list[JsonDict]] = {}
        for record in due:
            event = record["event"]
            if wait and event in last and record["at"] - last[event][0]["at"] <= wait:
                last[event].append(record)
                continue
            last[event] = [record]
            if not wait or now - record["at"] >= wait:  # else others may come: later
                batches.append(last[event])
        return batches


class Outbox(ListeningPart):
    """Sends what is in the outbox, one worker for each sink.

    A :class:`tisat_serve.service.Part`.
    """

    name = "outbox"

    def __init__(self, sinks: Sequence[Sink]) -> None:
        super().__init__()
        self.workers = [SinkWorker(sink, self._end) for sink in sinks]

    @property
    def error(self) -> str:
        """Present problems, each sink by its name."""
        return "; ".join(f"{one.sink.name}: {one.error}" for one in self.workers if one.error)

    @error.setter
    def error(self, sentence: str) -> None:
        assert not sentence, "errors are those of the workers"

    @property
    def sent(self) -> int:
        """Messages sent."""
        return sum(one.sent for one in self.workers)

    @property
    def failed(self) -> int:
        """Attempts that failed."""
        return sum(one.failed for one in self.workers)

    def report(self) -> dict[str, float]:
        """Messages sent, failed and given up, and how many sinks do not take theirs."""
        return {
            "sent": self.sent,
            "failed": self.failed,
            "given_up": sum(one.given_up for one in self.workers),
            "failing": sum(bool(one.error) for one in self.workers),
        }

    def start(self, service: Service) -> None:
        """Begin; messages for sinks that are not configured any more are let go."""
        self._service = service
        self._begin()
        names = [one.sink.name for one in self.workers]
        with service.engine.store.writing() as write:
            write.execute(f"DELETE FROM outbox WHERE sink NOT IN ({', '.join('?' * len(names))})", names)
        for worker in self.workers:
            worker.start(service)

    def stop(self) -> None:
        """End; a worker that is sending is not waited for longer than :data:`LINGER`."""
        self._end.set()
        deadline = clocks.monotonic() + LINGER
        for worker in self.workers:
            worker.wake.set()
        for worker in self.workers:
            worker.join(max(deadline - clocks.monotonic(), 0.0))
        self._ended()

    def _listen(self, event: JsonDict) -> None:
        if event["what"] in ("raised", "joined", "grown", "worsened", "cleared"):
            for worker in self.workers:
                worker.wake.set()
