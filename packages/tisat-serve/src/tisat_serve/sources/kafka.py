"""Kafka: rows in by a consumer group, alarms out to a topic.

The key of a message is the entity, so that its rows stay in one partition and in order; the value is a row as JSON. Kafka's consumer
group says which service reads which partition. How far it was read is kept here, in the transaction that keeps the rows: exactly
once without a transaction of Kafka's. When a partition goes to another service, the states of its entities lie on a shelf
(:mod:`tisat_serve.cluster.entity_transfer`) and the next owner reads on from there, to the bit. Offsets are told to the broker as well, for those who
look at the lag there; nothing here reads them.
"""

from __future__ import annotations

import time as clocks
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tisat.errors import InputError, TisatError
from tisat.utils.extras import require
from tisat_serve.cluster.entity_transfer import SnapshotFolder, pack, release, unpack
from tisat_serve.sinks.message import Message
from tisat_serve.store import Mark
from tisat_serve.structs import Row
from tisat_serve.worker import ThreadedPart

TOGETHER = 1000  # messages judged in one transaction
EVERY = 30.0  # seconds between two parcels of a partition
WAIT = 0.25  # seconds to wait for messages


class _Value(msgspec.Struct):
    values: list[float | str | None] | dict[str, float | str | None]
    entity: str = ""
    time: str | int | float | None = None
    group: str = ""


_decode = msgspec.json.Decoder(_Value).decode


def row_of(content: bytes, entity: str, stamp: int | None) -> Row:
    """A message as a row.

    The message's own time where the row has none, so that reading it again gives the same.

    Examples
    --------
    >>> row_of(b'{"values": [1.5], "time": 1770000000}', "pump-1", None)
    Row(entity='pump-1', values=[1.5], time=1770000000, group='')
    """
    try:
        value = _decode(content)
    except RecursionError:
        raise ValueError("a row must not be nested") from None
    name = value.entity or entity
    if not name:
        raise ValueError("a row must say its entity, or its message must have it as key")
    return Row(name, value.values, stamp if value.time is None else value.time, value.group)


class KafkaSource(ThreadedPart):
    """A :class:`tisat_serve.service.Part` that reads a topic as one of a consumer group.

    Parameters
    ----------
    name : str
    brokers : str
        ``host:port``, with commas between several.
    topic, group : str
    shelf : path, optional
        A folder that every service of the group sees. Without it a partition that moves begins again from its first message.
    every : float
        Seconds between two parcels of a partition: what another service judges again at most after a kill.
    options : dict, optional
        More settings of librdkafka, such as ``security.protocol``.
    """

    patience: ClassVar[float] = 60.0  # partitions are handed over

    def __init__(
        self,
        name: str,
        brokers: str,
        topic: str,
        group: str,
        *,
        shelf: str | Path | None = None,
        every: float = EVERY,
        options: dict[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._kafka = require("confluent_kafka", whose="A source of kind 'kafka'")
        if not brokers or not topic or not group:
            raise InputError(
                "A source of kind 'kafka' must have brokers, a topic and a consumer group. Got not all of them."
            )
        self.name, self.topic, self.every = name, topic, every
        self.shelf = None if shelf is None else SnapshotFolder(shelf)
        self._settings = {
            "bootstrap.servers": brokers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
            "topic.metadata.refresh.interval.ms": 5_000,  # a topic that is made later is found soon
            **(options or {}),
        }
        self.rows = self.refused = self.moves = 0
        self.next: dict[int, int] = {}  # by partition that is ours: the offset of the next message
        self._owner: dict[str, int] = {}  # the partition of each entity that we know
        self._shelved: dict[int, tuple[float, int]] = {}  # when a parcel was laid down, and how far it is
        self._begun = False

    # ------------------------------------------------------------------ a part of the service

    def _begin(self) -> None:
        store = self._service.engine.store
        self._owner = dict(store.read("SELECT entity, partition FROM owners WHERE source = ?", (self.topic,)))

    def report(self) -> dict[str, float]:
        """Rows taken, messages that could not be read, partitions that are ours, and how often they moved."""
        return {"rows": self.rows, "refused": self.refused, "partitions": len(self.next), "moves": self.moves}

    def _run(self) -> None:
        def failed(error: Any) -> None:
            self._trouble(str(error))

        consumer = self._kafka.Consumer({**self._settings, "error_cb": failed})
        consumer.subscribe([self.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        try:
            while not self._end.is_set():
                try:
                    messages = consumer.consume(TOGETHER, WAIT)
                    if messages:
                        self._take(messages)
                        consumer.commit(
                            offsets=[self._kafka.TopicPartition(self.topic, p, n) for p, n in self.next.items()],
                            asynchronous=True,
                        )
                    self._write_snapshots()
                except (TisatError, self._kafka.KafkaException, OSError) as error:
                    self._trouble(str(error))
                    self._end.wait(0.5)
        finally:
            consumer.close()  # hands over what is ours

    # ------------------------------------------------------------------ rows

    def _take(self, messages: list[Any]) -> None:
        rows: list[Row] = []
        mark = Mark(self.topic, {}, {})
        for message in messages:
            if message.error() is not None:
                self._trouble(str(message.error()))
                continue
            partition = message.partition()
            if message.offset() < self.next.get(partition, 0):
                continue  # read already
            mark.next[partition] = message.offset() + 1
            row = self._row(message)
            if row is None:
                self.refused += 1
                continue
            if self._owner.get(row.entity) != partition:
                mark.owners[row.entity] = self._owner[row.entity] = partition
            rows.append(row)
        if mark.next and self._judge(rows, mark):
            self.next |= mark.next
            self.rows += len(rows)

    def _row(self, message: Any) -> Row | None:
        kind, stamp = message.timestamp()
        try:
            return row_of(message.value() or b"", (message.key() or b"").decode(), stamp if kind else None)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            return None

    # ------------------------------------------------------------------ partitions come and go

    def _entities(self, partition: int) -> list[str]:
        return [name for name in list(self._service.engine.cells) if self._owner.get(name) == partition]

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        engine = self._service.engine
        local: dict[int, int] = dict(
            engine.store.read("SELECT partition, next FROM marks WHERE source = ?", (self.topic,))
        )
        mine = {assigned.partition for assigned in partitions}
        if not self._begun:  # what this folder had before it began: of partitions that are others' now
            for partition in set(self._owner.values()) - mine:
                self._hand_over(partition, local.get(partition, 0))
            self._begun = True
        for assigned in partitions:
            local_mark = local.get(assigned.partition)
            parcel = self._parcel(assigned.partition)
            if parcel is not None and parcel.offset > (local_mark or 0):
                release(engine, self._entities(assigned.partition))
                names = unpack(engine, parcel.entities)
                mark = Mark(self.topic, {assigned.partition: parcel.offset}, dict.fromkeys(names, assigned.partition))
                with engine.store.writing() as write:
                    mark.write(write)
                self._owner |= mark.owners
                local_mark = parcel.offset
            elif local_mark is not None:
                self._resume_entities(assigned.partition)
            assigned.offset = self._kafka.OFFSET_BEGINNING if local_mark is None else local_mark
            self.next[assigned.partition] = local_mark or 0
            self.moves += 1
        consumer.assign(partitions)
        self._service.say(
            f"{self.name}: reads the partitions {', '.join(map(str, sorted(self.next))) or 'none'} of {self.topic}"
        )

    def _parcel(self, partition: int) -> Any:
        return None if self.shelf is None else self.shelf.get(self.topic, partition)

    def _resume_entities(self, partition: int) -> None:
        """Entities that were let go and that nobody has taken further since: from their own state in the store."""
        engine = self._service.engine
        names = [name for name in engine.entities.away if self._owner.get(name) == partition]
        engine.entities.resume(names, engine.log.next - 1)

    def _revoked(self, _consumer: Any, partitions: list[Any]) -> None:
        for one in partitions:
            self._hand_over(one.partition, self.next.pop(one.partition, 0))
            self._shelved.pop(one.partition, None)

    def _hand_over(self, partition: int, offset: int) -> None:
        engine = self._service.engine
        names = self._entities(partition)
        if self.shelf is not None and offset:
            with engine.lock:
                self.shelf.put(self.topic, partition, offset, pack(engine, names))
        release(engine, names)

    def _write_snapshots(self) -> None:
        """A parcel of the partition whose last one is the oldest, where it is due."""
        if self.shelf is None:
            return
        now = clocks.monotonic()
        for partition, offset in self.next.items():
            at, before = self._shelved.get(partition, (-self.every, 0))
            if offset > before and now - at >= self.every:
                engine = self._service.engine
                with engine.lock:
                    packed = pack(engine, self._entities(partition))
                self.shelf.put(self.topic, partition, offset, packed)
                self._shelved[partition] = (now, offset)
                return


class KafkaSink:
    """Alarms as messages of a topic, the entity as key; told through the outbox.

    Sent twice, a message has the same ``key`` inside.
    """

    def __init__(self, name: str, brokers: str, topic: str, *, options: dict[str, str] | None = None) -> None:
        kafka = require("confluent_kafka", whose="A sink of kind 'kafka'")
        if not brokers or not topic:
            raise InputError("A sink of kind 'kafka' must have brokers and a topic. Got not both.")
        self.name, self._topic = name, topic
        self._producer = kafka.Producer({"bootstrap.servers": brokers, "enable.idempotence": True, **(options or {})})

    def send(self, message: Message) -> None:
        """See :class:`tisat_serve.sinks.outbox.Sink`."""
        failed: list[Any] = []
        self._producer.produce(
            self._topic,
            key=message.entity,
            value=msgspec.json.encode(message),
            on_delivery=lambda error, _: failed.append(error) if error is not None else None,
        )
        left = self._producer.flush(10.0)
        if failed or left:
            raise OSError(f"the broker did not take it: {failed[0] if failed else 'no answer'}")
