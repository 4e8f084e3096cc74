"""NATS JetStream: rows in from a stream, for those to whom Kafka is too much.

The subject ends with the entity (``rows.pump-1``), the value is a row as JSON. JetStream keeps the messages and numbers them; how far
they were read is kept here, in the transaction that keeps the rows, so nothing is acknowledged and nothing is lost or judged twice.
Several services read the same stream, each with its ``--shard`` of the entities.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import msgspec

from tisat.errors import InputError
from tisat.utils.extras import require
from tisat_serve.sources.kafka import row_of
from tisat_serve.store import Mark
from tisat_serve.structs import Row
from tisat_serve.worker import ThreadedPart

TOGETHER = 500  # messages judged in one transaction
WAIT = 0.5  # seconds to wait for messages
AGAIN = 1.0  # seconds before a lost server is looked for again


class NatsSource(ThreadedPart):
    """A :class:`tisat_serve.service.Part` that reads a stream of JetStream.

    Parameters
    ----------
    name : str
    servers : str
        Such as ``nats://127.0.0.1:4222``, with commas between several.
    stream : str
        Its subjects are ``stream.ENTITY``.
    """

    patience: ClassVar[float] = 30.0

    def __init__(self, name: str, servers: str, stream: str) -> None:
        super().__init__()
        self._nats = require("nats", whose="A source of kind 'nats'")
        if not servers or not stream:
            raise InputError("A source of kind 'nats' must have servers and a stream. Got not both.")
        self.name, self.stream, self._servers = name, stream, servers.split(",")
        self.rows = self.refused = self.others = self.next = 0

    def _begin(self) -> None:
        found = self._service.engine.store.read(
            "SELECT next FROM marks WHERE source = ? AND partition = 0", (self.stream,)
        )
        self.next = int(found[0][0]) if found else 1  # numbers begin at 1

    def report(self) -> dict[str, float]:
        """Rows taken, messages that could not be read, those of other shards, and the number of the next message."""
        return {"rows": self.rows, "refused": self.refused, "of_other_shards": self.others, "next": self.next}

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                asyncio.run(self._read())
            except Exception as error:  # whatever a server far away does: in a moment again, from where we are
                self._trouble(f"{type(error).__name__}: {str(error)[:200]}")
                self._end.wait(AGAIN)

    async def _read(self) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        connection = await self._nats.connect(self._servers, connect_timeout=5, max_reconnect_attempts=1)
        try:
            start = ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self.next,
                ack_policy=AckPolicy.NONE,
                inactive_threshold=60.0,
            )
            subscription = await connection.jetstream().pull_subscribe(
                f"{self.stream}.>", stream=self.stream, config=start
            )
            self.error = ""
            while not self._end.is_set():
                try:
                    messages = await subscription.fetch(TOGETHER, timeout=WAIT)
                except TimeoutError:
                    continue  # nothing came
                await asyncio.to_thread(self._take, messages)
        finally:
            await connection.close()

    def _take(self, messages: list[Any]) -> None:
        engine = self._service.engine
        rows: list[Row] = []
        number = self.next
        for message in messages:
            place = message.metadata.sequence.stream
            if place < number:
                continue  # read already
            number = place + 1
            entity = message.subject.removeprefix(f"{self.stream}.")
            if entity not in engine.cells and engine.admission.accepts is not None and engine.admission.accepts(entity):
                self.others += 1
                continue
            try:
                rows.append(row_of(message.data, entity, int(message.metadata.timestamp.timestamp() * 1000)))
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
                self.refused += 1
        if self._judge(rows, Mark(self.stream, {0: number}, {})):
            self.next = number
            self.rows += len(rows)
