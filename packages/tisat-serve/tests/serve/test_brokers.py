"""Brokers that are only pretended: what is done with their messages, whatever is in them."""

import asyncio
import datetime
import http.client
import json
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from serve.conftest import START, plant_rows
from tisat.errors import InputError
from tisat_serve.cli.feedback import ask
from tisat_serve.service import BusyError, Service
from tisat_serve.sinks.message import Message
from tisat_serve.sources.kafka import row_of
from tisat_serve.sources.mqtt import Broker, MqttSink, MqttSource
from tisat_serve.sources.nats import NatsSource
from tisat_serve.sources.promql import PromQL
from tisat_serve.sources.samples import Sample, Samples
from tisat_serve.structs import Row


class Client:
    """What paho's client is asked to do."""

    def __init__(self, *_, **how):
        self.how, self.done, self.here, self.taken = how, [], True, True

    def __getattr__(self, name):
        return lambda *given, **how: self.done.append((name, *given, *how.values()))

    def is_connected(self):
        return self.here

    def publish(self, topic, content, **how):
        self.done.append(("publish", topic, json.loads(content), how))
        return SimpleNamespace(wait_for_publish=lambda _: None, is_published=lambda: self.taken)


class Taking:
    """A service that takes rows down, busy now and then."""

    def __init__(self, busy=0, folder="watch"):
        self.rows, self.busy = [], busy
        self.engine = SimpleNamespace(store=SimpleNamespace(folder=Path(folder)))

    def ingest(self, rows):
        if self.busy:
            self.busy -= 1
            raise BusyError("busy", 1)
        self.rows += rows


@pytest.fixture
def mqtt(monkeypatch):
    monkeypatch.setattr("paho.mqtt.client.Client", Client)
    monkeypatch.setattr("tisat_serve.sources.mqtt.clocks.sleep", lambda _: None)

    def make(topic, **how):
        taken = []
        samples = SimpleNamespace(rename={"t": "temp"}, take=taken.extend, start=lambda _: None, stop=lambda: taken.append("stopped"))  # fmt: skip
        source = MqttSource("m", topic, samples, Broker("h", 1883, **how))
        source.start(Taking(busy=2))
        return source, taken

    return make


def say(source, topic, payload):
    source._client.on_message(None, None, SimpleNamespace(topic=topic, payload=payload))


def test_rows_by_topic_are_taken_and_what_is_none_is_counted(mqtt):
    source, _ = mqtt("plant/{entity}", user="u", password="p", tls=True)
    assert ("username_pw_set", "u", "p") in source._client.done
    assert ("tls_set",) in source._client.done
    source._client.on_connect(source._client, None)
    assert ("subscribe", "plant/+", 1) in source._client.done
    say(source, "plant/p1", b'{"temp": 1.5, "time": 1770000000}')
    say(source, "elsewhere/p1", b'{"temp": 1.5}')
    for bad in (b"1.5", b"{", b'{"temp": "hot"}', b'{"temp": [1]}', b"[" * 100_000):
        say(source, "plant/p1", bad)
    hot = Row("p1", {"temp": "hot"}, None)  # a word may mean that there is no value: the model's reader decides
    assert source._service.rows == [Row("p1", {"temp": 1.5}, 1770000000), hot]
    assert source.report() == {"messages": 2, "refused": 4, "connected": 1.0}
    assert source.error == ""
    source._client.here = False
    assert "no connection to the broker at h:1883" in source.error


def test_samples_by_topic_are_taken_and_no_message_ends_the_source(mqtt):
    source, taken = mqtt("{entity}/+/{channel}")
    say(source, "p1/x/t", b'{"value": 2, "time": 90}')
    say(source, "p1/x/flow", b'{"value": 2.5, "time": "2026-01-01T00:00:00Z"}')
    say(source, "p1/x/flow", b"3")
    say(source, "p1/x/flow", b'{"other": 3}')  # no value: nothing to take
    for bad in (b'{"value": null}', b"[1]", b'{"value": {}}', b'{"value": 1' + b"0" * 400 + b"}", b'{"value": "x"}', b'{"value": 1, "time": "soon"}'):  # fmt: skip
        say(source, "p1/x/flow", bad)
    assert taken[0] == ("p1", "temp", 90 * 10**9, 2.0)
    assert taken[1] == ("p1", "flow", 1_767_225_600 * 10**9, 2.5)
    assert taken[2][3] == 3.0
    assert taken[2][2] > taken[1][2]
    assert (source.messages, source.refused, len(taken)) == (4, 6, 3)
    source.stop()
    assert taken[-1] == "stopped"
    assert [one[0] for one in source._client.done][-2:] == ["disconnect", "loop_stop"]


def test_alarms_go_out_as_retained_messages_and_are_kept_where_none_takes_them(monkeypatch):
    monkeypatch.setattr("paho.mqtt.client.Client", Client)
    sink = MqttSink("m", "alarms/", Broker("h", 1))
    sink.start(Taking())
    message = Message("raised", "k", "a1", "plant/p#1", "main", "statistic", "spike", "now", "now", None, 2.0, 1.0, "1/day", "", [], {}, "", "", "")  # fmt: skip
    sink.send(message)
    name, topic, content, how = sink._client.done[-1]
    assert (name, topic, content["id"], how) == ("publish", "alarms/plant_p_1", "a1", {"qos": 1, "retain": True})
    sink._client.taken = False
    with pytest.raises(OSError, match="did not take it"):
        sink.send(message)
    sink.stop()
    assert [one[0] for one in sink._client.done][-2:] == ["disconnect", "loop_stop"]


def test_a_client_of_a_broker_is_one_of_its_service_and_the_same_after_a_restart(monkeypatch):
    monkeypatch.setattr("paho.mqtt.client.Client", Client)

    def name(folder, machine="a", **how):
        monkeypatch.setattr("platform.node", lambda: machine)
        return Broker("h", 1, **how).connect("m", Path(folder), keep=True).how["client_id"]

    assert name("one") == name("one") == name("./one")
    assert len({name("one"), name("two"), name("one", machine="b")}) == 3


def messages(rows, first=1):
    at = datetime.datetime.fromtimestamp(START, datetime.UTC)
    return [
        SimpleNamespace(subject=f"rows.{entity}", data=data, metadata=SimpleNamespace(sequence=SimpleNamespace(stream=first + k), timestamp=at))
        for k, (entity, data) in enumerate(rows)
    ]  # fmt: skip


class Jet:
    """A JetStream that is lost once, gives some batches of messages, and ends its reader when there are no more."""

    def __init__(self, source, batches):
        self.source, self.batches, self.asked, self.lost, self.closed = source, list(batches), [], 1, 0

    async def connect(self, servers, **_):
        if self.lost:
            self.lost -= 1
            raise OSError("no server")
        self.asked.append(servers)
        return self

    def jetstream(self):
        return self

    async def pull_subscribe(self, subject, *, stream, config):
        self.asked.append((subject, stream, config.opt_start_seq))
        return self

    async def fetch(self, *_, **__):
        await asyncio.sleep(0)
        if not self.batches:
            self.source._end.set()
            raise TimeoutError
        return self.batches.pop(0)

    async def close(self):
        self.closed += 1


def test_a_stream_is_read_once_from_where_it_was_left(engine_in, tmp_path, monkeypatch):
    monkeypatch.setattr("tisat_serve.sources.nats.AGAIN", 0.0)
    values = [json.dumps({"values": row, "time": START + 60 * k}).encode() for k, row in enumerate(plant_rows(4).tolist())]  # fmt: skip
    deep = b'{"x": ' + b"[" * 100_000
    mine = [("e1", values[0]), ("other", values[0]), ("e1", deep), ("e1", values[1]), ("e1", values[2])]
    engine = engine_in(tmp_path)
    engine.admission.accepts = lambda name: "not here" if name == "other" else ""
    service = Service(engine)
    said = []
    service.say = said.append
    service.start()

    def read(batches):
        source = NatsSource("n", "nats://a,nats://b", "rows")
        jet = source._nats = Jet(source, batches)
        source.start(service)
        source._thread.join(20)
        source.stop()
        return source, jet

    source, jet = read([messages(mine[:3]), messages(mine)])
    assert said == ["n: OSError: no server"]
    assert jet.asked == [["nats://a", "nats://b"], ("rows.>", "rows", 1)]
    assert jet.closed == 1
    assert source.report() == {"rows": 3, "refused": 1, "of_other_shards": 1, "next": 6}
    source, jet = read([messages([("e1", values[3])], first=6)])
    assert jet.asked[1] == ("rows.>", "rows", 6)
    assert source.report() == {"rows": 1, "refused": 0, "of_other_shards": 0, "next": 7}
    assert engine.counts["ok"] + engine.counts["warming up"] == 4
    service.stop()


def test_a_busy_service_is_asked_again_and_nothing_is_marked_until_it_takes_the_rows():
    source = NatsSource("n", "nats://a", "rows")
    tries = []

    def ingest(rows, mark):
        tries.append((len(rows), mark.next))
        if len(tries) < 3:
            raise BusyError("busy", 1)

    source._service = SimpleNamespace(
        engine=SimpleNamespace(cells={}, admission=SimpleNamespace(accepts=None)), ingest=ingest, say=lambda _: None
    )
    source._end.wait = lambda _: False
    source._take(messages([("e1", b'{"values": [1.0]}')]))
    assert [count for count, _ in tries] == [1, 1, 1]
    assert (source.next, source.error) == (2, "")
    tries.clear()
    source._end.wait = lambda _: True
    source._take(messages([("e1", b'{"values": [1.0]}')], first=2))
    assert source.next == 2, "the end came first: it is read again later"
    with pytest.raises(InputError, match="must have servers and a stream"):
        NatsSource("n", "", "rows")


def test_samples_are_asked_for_by_their_real_part(engine_in, tmp_path, monkeypatch):
    monkeypatch.setattr("paho.mqtt.client.Client", Client)
    service = Service(engine_in(tmp_path)).start()
    source = MqttSource("m", "{entity}/{channel}", Samples(name="m", group="main", lateness=0.0), Broker("h", 1))
    source.start(service)
    for k, row in enumerate(plant_rows(3).tolist()):
        for channel, value in zip(("temp", "flow", "power"), row, strict=True):
            say(source, f"p1/{channel}", json.dumps({"value": value, "time": START + 60 * k}).encode())
    source.stop()
    service.stop()
    assert source.refused == 0
    assert service.engine.cells["p1"].at == (START + 120) * 10**9


def test_rows_that_a_busy_service_turns_away_are_kept_and_go_first(engine_in, tmp_path):
    service = Service(engine_in(tmp_path)).start()
    samples = Samples(name="s", group="main", lateness=0.0)
    samples._service = service
    samples._begin()
    ingest = service.ingest
    rows = [
        [Sample("p1", channel, (START + 60 * k) * 10**9, value) for channel, value in zip(("temp", "flow", "power"), row, strict=True)]
        for k, row in enumerate(plant_rows(3).tolist())
    ]  # fmt: skip
    assert samples.take(rows[0]) == 1

    def busy(_):
        raise BusyError("No room.", 1)

    service.ingest = busy
    for call in (lambda: samples.take(rows[1]), samples.tidy):
        with pytest.raises(BusyError):
            call()
    assert service.engine.store.read("SELECT count(*) FROM samples WHERE newest >= ?", ((START + 60) * 10**9,)) == [(1,)], "not forgotten"  # fmt: skip
    service.ingest = ingest
    assert samples.take(rows[1]) == 1, "sent again: its samples are late, its row was kept"
    assert samples.take(rows[2]) == 1
    samples.tidy()
    assert service.engine.store.read("SELECT count(*) FROM samples") == [(0,)]
    service.stop()
    assert service.engine.counts["ok"] + service.engine.counts["warming up"] == 3
    assert service.engine.cells["p1"].at == (START + 120) * 10**9


def test_a_server_that_speaks_no_http_is_one_sentence(monkeypatch):
    def nonsense(*_, **__):
        raise http.client.BadStatusLine("SSH-2.0")

    monkeypatch.setattr("tisat_serve.http_client._opener", lambda _: nonsense)
    with pytest.raises(InputError, match=r"must answer. It does not: BadStatusLine: SSH-2.0"):
        PromQL(name="p", url="http://127.0.0.1:22", queries={"a": "b"}).ask("b", 0.0, 1.0)
    with pytest.raises(InputError, match=r"Nothing answers at http://127.0.0.1:22"):
        ask("http://127.0.0.1:22", "/api/v1/proposals")


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b'{"values": "x"}', b'{"values": [1]}', b'{"x": ' + b"[" * 100_000]
)
def test_a_message_that_is_no_row_is_a_value_error(content):
    with pytest.raises((ValueError, msgspec.DecodeError)):
        row_of(content, "", None)
