"""MQTT: rows or samples in by topic, alarms out as retained messages.

In: a topic pattern such as ``plant/{entity}/{channel}`` with a number (or ``{"value": 1.5, "time": ...}``) as message, or ``plant/{entity}``
with an object by channel. A message is acknowledged (QoS 1) after it is on the disk; the session outlives the connection, so the broker
keeps what comes while we are away.
"""

from __future__ import annotations

import hashlib
import math
import platform
import re
import time as clocks
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tisat.errors import InputError, TisatError
from tisat.io.timestamps import Moment, read_time
from tisat.utils.extras import require
from tisat_serve.service import Service
from tisat_serve.sinks.message import Message
from tisat_serve.sources.samples import Sample, Samples
from tisat_serve.structs import Row


@dataclass(frozen=True)
class Broker:
    """Address and credentials of a broker."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    tls: bool = False

    def connect(self, name: str, folder: Path, *, keep: bool) -> Any:
        """A client that connects in the background and again after every loss.

        The broker may keep what comes in between.

        Its id is the same after a restart, and another for each service: of its name, this machine and the folder of its store.
        """
        import paho.mqtt.client as paho

        place = hashlib.blake2b(f"{platform.node()}:{folder.resolve()}".encode(), digest_size=4).hexdigest()
        client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id=f"tisat-{name}-{place}", clean_session=not keep
        )
        if self.user:
            client.username_pw_set(self.user, self.password)
        if self.tls:
            client.tls_set()
        client.reconnect_delay_set(1, 30)
        client.connect_async(self.host, self.port, keepalive=30)
        return client


def pattern_of(topic: str) -> tuple[str, re.Pattern[str]]:
    """Subscription and regular expression of a topic pattern.

    Examples
    --------
    >>> subscription, read = pattern_of("plant/{entity}/{channel}")
    >>> subscription, read.fullmatch("plant/p1/temp").groupdict()
    ('plant/+/+', {'entity': 'p1', 'channel': 'temp'})
    """
    if "{entity}" not in topic or "#" in topic:
        raise InputError(
            f"The topic of an MQTT source must hold {{entity}}, and perhaps {{channel}}. Got {topic[:80]!r} instead."
        )
    parts = re.split(r"(\{entity\}|\{channel\}|\+)", topic)
    shapes = {"{entity}": r"(?P<entity>[^/]+)", "{channel}": r"(?P<channel>[^/]+)", "+": r"[^/]+"}
    read = "".join(shapes.get(part, re.escape(part)) for part in parts)
    return "".join("+" if part in shapes else part for part in parts), re.compile(read)


class MqttSource:
    """A :class:`tisat_serve.service.Part` that subscribes."""

    def __init__(self, name: str, topic: str, samples: Samples, broker: Broker) -> None:
        self.name = name
        self._subscription, self._read = pattern_of(topic)
        require("paho.mqtt.client", whose="MQTT")
        self._samples, self._broker = samples, broker
        self._client: Any = None  # made at the start: until then the configuration may be refused
        self.messages = self.refused = 0
        self._where = f"{broker.host}:{broker.port}"

    @property
    def error(self) -> str:
        """Whether the broker is there."""
        here = self._client is not None and self._client.is_connected()
        return "" if here else f"no connection to the broker at {self._where}"

    def start(self, service: Service) -> None:
        """Begin."""
        self._service = service
        self._samples.start(service)
        self._client = self._broker.connect(self.name, service.engine.store.folder, keep=True)
        self._client.on_connect = lambda client, *_: client.subscribe(self._subscription, qos=1)
        self._client.on_message = self._message
        self._client.loop_start()

    def stop(self) -> None:
        """End; the broker keeps what comes."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._samples.stop()

    def report(self) -> dict[str, float]:
        """Messages taken and refused."""
        return {"messages": self.messages, "refused": self.refused, "connected": float(not self.error)}

    def _message(self, _client: Any, _data: Any, message: Any) -> None:
        match = self._read.fullmatch(message.topic)
        if match is None:
            return
        while True:
            try:
                self._take(match.groupdict(), bytes(message.payload))
                self.messages += 1
                return
            except (msgspec.DecodeError, InputError, ValueError, TypeError, OverflowError, RecursionError):
                self.refused += 1
                return
            except TisatError:
                clocks.sleep(0.5)  # busy or full: not acknowledged until it is on the disk

    def _take(self, names: dict[str, str], payload: bytes) -> None:
        value = msgspec.json.decode(payload)
        channel = names.get("channel")
        if channel is None:
            if not isinstance(value, dict):
                raise ValueError("an object by channel")
            at = value.pop("time", None)
            row = msgspec.convert({"entity": names["entity"], "values": value, "time": at}, Row)
            self._service.ingest([row])
            return
        pair = value if isinstance(value, dict) else {"value": value}
        number, at = float(pair.get("value", math.nan)), pair.get("time")
        moment = Moment(dates=True, value=int(clocks.time() * 1e9)) if at is None else read_time(at)
        nanoseconds = int(moment.value) if moment.dates else round(moment.value * 1e9)
        if math.isfinite(number):
            self._samples.take(
                [Sample(names["entity"], self._samples.rename.get(channel, channel), nanoseconds, number)]
            )


class MqttSink:
    """Alarms as retained messages on ``topic/{entity}``; told through the outbox."""

    def __init__(self, name: str, topic: str, broker: Broker) -> None:
        require("paho.mqtt.client", whose="MQTT")
        self.name, self._topic, self._broker = name, topic.rstrip("/"), broker

    def start(self, service: Service) -> None:
        """Connect."""
        self._client = self._broker.connect(f"{self.name}-out", service.engine.store.folder, keep=False)
        self._client.loop_start()

    def stop(self) -> None:
        """Disconnect: nothing of it is left after a reload."""
        self._client.disconnect()
        self._client.loop_stop()

    def send(self, message: Message) -> None:
        """See :class:`tisat_serve.sinks.outbox.Sink`."""
        entity = re.sub(r"[/+#]", "_", message.entity)
        told = self._client.publish(f"{self._topic}/{entity}", msgspec.json.encode(message), qos=1, retain=True)
        told.wait_for_publish(10.0)
        if not told.is_published():
            raise OSError("the broker did not take it")
