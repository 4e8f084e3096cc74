"""The outbox: what is to be sent was written in the same transaction as the alarm, and is sent until somebody takes it.

At least once: a message whose answer was lost is sent again, with the same key.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time as clocks
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tisat._extras import require
from tisat.errors import InputError
from tisat.serve.sinks.message import Message, message_of

if TYPE_CHECKING:
    from tisat.serve.service import Service

PATIENCE = 3 * 86400.0  # seconds after which a message nobody takes is given up
LONGEST_WAIT = 3600.0
TIMEOUT = 10.0


class Sink(Protocol):
    """Somebody to tell."""

    name: str

    def send(self, message: Message) -> None:
        """Tell; any error means that it was not taken."""


class Webhook:
    """A POST of the message as JSON, signed: ``X-Tisat-Signature: sha256=HMAC(secret, timestamp + "." + body)``."""

    def __init__(self, name: str, url: str, secret: str = "") -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"The url of a webhook must begin with http:// or https://. Got {url[:80]!r} instead.")
        self.name, self.url, self._secret = name, url, secret

    def send(self, message: Message) -> None:
        """See :class:`Sink`."""
        body = msgspec.json.encode(message)
        stamp = str(int(clocks.time()))
        headers = {
            "Content-Type": "application/json",
            "X-Tisat-Timestamp": stamp,
            "Idempotency-Key": message.key,
            "User-Agent": "tisat",
        }
        if self._secret:
            headers["X-Tisat-Signature"] = signature(self._secret, stamp, body)
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            answer.read(1)


def signature(secret: str, stamp: str, body: bytes) -> str:
    """What a receiver compares with the header.

    Examples
    --------
    >>> signature("key", "0", b"{}")[:14]
    'sha256=7314351'
    """
    return "sha256=" + hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class Apprise:
    """Mail, Slack, Teams and a hundred others, by their apprise address."""

    def __init__(self, name: str, urls: Sequence[str]) -> None:
        apprise = require("apprise", whose="A sink of kind 'apprise'")
        self.name = name
        self._apprise = apprise.Apprise()
        for url in urls:
            if not self._apprise.add(url):
                raise InputError(
                    f"The address of an apprise sink must be one apprise knows. Got {url.partition(':')[0]!r}://... instead."
                )

    def send(self, message: Message) -> None:
        """See :class:`Sink`."""
        kind = "success" if message.event == "cleared" else "warning"
        if not self._apprise.notify(title=message.title, body=f"{message.text}\n{message.url}", notify_type=kind):
            raise OSError("apprise could not deliver to every address")


class Outbox:
    """Sends what is in the outbox; a :class:`tisat.serve.service.Part`."""

    name = "outbox"

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self.sinks = {sink.name: sink for sink in sinks}
        self.sent = self.failed = self.given_up = 0
        self.error = ""
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, service: Service) -> None:
        """Begin."""
        service.engine.listeners.append(self._listen)
        self._service = service
        self._thread = threading.Thread(target=self._run, name="tisat-outbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; what is left is sent after the next start."""
        self._end.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(TIMEOUT + 5.0)
            self._service.engine.listeners.remove(self._listen)

    def report(self) -> dict[str, float]:
        """Messages sent, failed and given up."""
        return {"sent": self.sent, "failed": self.failed, "given_up": self.given_up}

    def _listen(self, _: dict[str, Any]) -> None:
        self._wake.set()

    def _run(self) -> None:
        while not self._end.is_set():
            self._wake.clear()
            try:
                self.flush()
            except Exception as error:  # a disk that is full, a store that is busy: later again
                self.failed += 1
                self.error = f"{type(error).__name__}: {error}"
            self._wake.wait(1.0)

    def flush(self) -> None:
        """Send what is due."""
        service, now = self._service, clocks.time()
        store = service.engine.store
        due = store.records("SELECT * FROM outbox WHERE due <= ? ORDER BY id LIMIT 100", (now,))
        for record in due:
            if self._end.is_set():
                return
            sink = self.sinks.get(record["sink"])
            error = ""
            try:
                if sink is not None:
                    sink.send(message_of(service.view, record["alarm"], record["event"], service.settings.url))
            except Exception as problem:  # whatever a stranger's server does, the message is kept
                error = f"{type(problem).__name__}: {str(problem)[:300]}"
                if error != self.error:
                    service.say(f"{record['sink']}: a message could not be sent and is kept: {error}")
            self.error = error
            tries = record["tries"] + 1
            with store.writing() as write:
                if not error or now - record["at"] > PATIENCE:
                    write.execute("DELETE FROM outbox WHERE id = ?", (record["id"],))
                else:
                    later = now + min(2.0**tries, LONGEST_WAIT)
                    write.execute(
                        "UPDATE outbox SET due = ?, tries = ?, error = ? WHERE id = ?",
                        (later, tries, error, record["id"]),
                    )
            self.sent += not error
            self.failed += bool(error)
            self.given_up += bool(error) and now - record["at"] > PATIENCE
