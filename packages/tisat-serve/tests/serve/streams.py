"""What tests of streams share: a broker in a process of its own, rows in a topic, and what folders have judged."""

import json
import multiprocessing
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from serve.conftest import START, plant_rows
from tisat.watch import Watch
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.group import Group
from tisat_serve.engine.row_encoding import ACCEPTED, STATUSES, unpack_body, unpack_brief
from tisat_serve.store import FILE, Store
from tisat_serve.structs import Row


def _broker(pipe: Any) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": "ignored:1", "test.mock.num.brokers": 1, "log_level": 2})
    found = producer.list_topics(timeout=20)
    pipe.send(next(f"{one.host}:{one.port}" for one in found.brokers.values()))
    pipe.recv()  # until the test is over


class Broker:
    """librdkafka's mock broker, in a process of its own; topics have four partitions."""

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_broker, args=(theirs,), daemon=True)
        self._process.start()
        self.address = self._pipe.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()

    def send(self, topic: str, rows: Iterable[Row]) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.address, "log_level": 2})
        for row in rows:
            value = json.dumps({"values": row.values, "time": row.time}).encode()
            producer.produce(topic, key=row.entity, value=value)
            producer.poll(0)
        assert producer.flush(30) == 0

    def read(
        self, topic: str, seconds: float = 10.0, enough: Callable[[list[dict[str, Any]]], bool] = lambda _: False
    ) -> list[dict[str, Any]]:
        """All messages of a topic, as JSON; those until it is enough."""
        from confluent_kafka import Consumer

        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "reader", "auto.offset.reset": "earliest", "log_level": 2})  # fmt: skip
        consumer.subscribe([topic])
        found: list[dict[str, Any]] = []
        quiet = time.monotonic() + seconds
        while time.monotonic() < quiet and not enough(found):
            found += [json.loads(one.value()) for one in consumer.consume(100, 0.3) if one.error() is None]
        consumer.close()
        return found


def stream_rows(entities: int, first: int, count: int, *, faulty: Sequence[str] = ("e1",)) -> list[Row]:
    """Rows in order of time; some of them come a row late, as they do in streams."""
    made = {
        f"e{i}": plant_rows(first + count, seed=i, fault=120 if f"e{i}" in faulty else None) for i in range(entities)
    }
    rows = [Row(name, made[name][k].tolist(), START + 60 * k) for k in range(first, first + count) for name in made]
    for k in range(7, len(rows) - entities, 97):
        rows[k], rows[k + entities] = rows[k + entities], rows[k]
    return rows


def judged(folder: Path, watch: Watch | None = None) -> set[str]:
    """The results a folder has on rows that were taken in, of entities that are gone as well, one line each.

    With ``watch`` what a killed service left in its log is judged first.
    """
    if watch is not None:
        with Store(folder) as store:
            Engine(store, [Group("main", watch, silent_after=1e9)], clock=lambda: float(START)).close()
    lines = set()
    there = sqlite3.connect(folder / FILE)
    query = (
        "SELECT name, rows, brief, body FROM history JOIN entities ON entities.id = history.entity ORDER BY history.id"
    )
    for name, rows, head, rest in there.execute(query):
        brief, body = unpack_brief(head, rows), unpack_body(rest, rows)
        for k in range(rows):
            if brief.status[k] < ACCEPTED:
                said = " ".join(float(x).hex() for x in (body.score[k], body.evidence[k], brief.statistic[k]))
                lines.add(
                    f"{name} {brief.times[k]} {STATUSES[brief.status[k]]} {body.row[k]} {int(brief.active[k])} {said}"
                )
    there.close()
    return lines


def book(folders: Iterable[Path]) -> dict[str, tuple[str, int, int | None]]:
    """The alarms of all folders by id; those that are over before those that are on."""
    found: dict[str, tuple[str, int, int | None]] = {}
    for folder in folders:
        store = sqlite3.connect(folder / FILE)
        for number, entity, raised, cleared in store.execute(
            "SELECT id, entity, raised, cleared FROM alarms WHERE sort = 'statistic'"
        ):
            if found.get(number, ("", 0, None))[2] is None:
                found[number] = (entity, raised, cleared)
        store.close()
    return found
