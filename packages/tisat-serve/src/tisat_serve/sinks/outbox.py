"""The outbox: what is to be sent was written in the same transaction as the alarm, and is sent until somebody takes it.

At least once: a message whose answer was lost is sent again, with the same key.
"""

from __future__ import annotations

import hashlib
import hmac
import time as clocks
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from tisat.errors import InputError
from tisat.utils.extras import require
from tisat_serve.http_client import ask, check_address
from tisat_serve.sinks.message import Message, message_of_all
from tisat_serve.worker import ListeningPart

PATIENCE = 3 * 86400.0  # seconds after which a message nobody takes is given up
LONGEST_WAIT = 3600.0
TIMEOUT = 10.0
TOGETHER = 10.0  # seconds for which a message to people waits for others that began together


class Sink(Protocol):
    """Somebody to tell. One with ``together`` seconds gets one message about all that began within so many."""

    name: str

    def send(self, message: Message) -> None:
        """Tell; any error means that it was not taken."""


class Webhook:
    """A POST of the message as JSON, signed: ``X-Tisat-Signature: sha256=HMAC(secret, timestamp + "." + body)``."""

    def __init__(self, name: str, url: str, secret: str = "", *, together: float = 0.0) -> None:
        check_address(url, "The url of a webhook")
        self.name, self.url, self._secret, self.together = name, url, secret, together

    def send(self, message: Message) -> None:
        """See :class:`Sink`."""
        body = msgspec.json.encode(message)
        stamp = str(int(clocks.time()))
        headers = {"Content-Type": "application/json", "X-Tisat-Timestamp": stamp, "Idempotency-Key": message.key}
        if self._secret:
            headers["X-Tisat-Signature"] = signature(self._secret, stamp, body)
        ask(self.url, headers, body, timeout=TIMEOUT)


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


class Outbox(ListeningPart):
    """Sends what is in the outbox; a :class:`tisat_serve.service.Part`."""

    name = "outbox"
    patience: ClassVar[float] = TIMEOUT + 5.0

    def __init__(self, sinks: Sequence[Sink]) -> None:
        super().__init__()
        self.sinks = {sink.name: sink for sink in sinks}
        self.sent = self.failed = self.given_up = 0

    def report(self) -> dict[str, float]:
        """Messages sent, failed and given up."""
        return {"sent": self.sent, "failed": self.failed, "given_up": self.given_up}

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
        """Send what is due; what began together goes as one message to a sink that wants it so."""
        service, now = self._service, clocks.time()
        store = service.engine.store
        due = store.records("SELECT * FROM outbox WHERE due <= ? ORDER BY id LIMIT 1000", (now,))
        for records in self._together(due, now):
            if self._end.is_set():
                return
            first = records[0]
            sink = self.sinks.get(first["sink"])
            error = ""
            try:
                if sink is not None:
                    ids = [record["alarm"] for record in records]
                    sink.send(message_of_all(service.view, ids, first["event"], service.settings.url))
            except Exception as problem:  # whatever a new user's server does, the message is kept
                error = f"{type(problem).__name__}: {str(problem)[:300]}"
                if error != self.error:
                    service.say(f"{first['sink']}: a message could not be sent and is kept: {error}")
            self.error = error
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
            self.sent += not error
            self.failed += bool(error)
            self.given_up += bool(error) and late

    def _together(self, due: list[dict[str, Any]], now: float) -> list[list[dict[str, Any]]]:
        """What goes as one message: of one sink and one kind of event, written within its ``together`` seconds."""
        found: list[list[dict[str, Any]]] = []
        last: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for record in due:
            wait = getattr(self.sinks.get(record["sink"]), "together", 0.0)
            key = (record["sink"], record["event"])
            if wait and key in last and record["at"] - last[key][0]["at"] <= wait:
                last[key].append(record)
                continue
            if wait and now - record["at"] < wait:
                last[key] = [record]  # others may come: later
                continue
            last[key] = [record]
            found.append(last[key])
        return found
