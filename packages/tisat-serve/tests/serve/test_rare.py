"""What a service rarely meets: rules that feed back, history that is too old, servers that fail, folders that do not fit."""

import io
import json
import sqlite3
import urllib.error
from types import SimpleNamespace

import msgspec
import pytest
from typer.testing import CliRunner

from serve.conftest import START, plant_rows, requests_of
from tisat.alarms.alarms import Alarm
from tisat.alarms.explanation import Reason
from tisat.alarms.suppression import Suppression, suppressed_by
from tisat.errors import InputError
from tisat_serve.alarms.alarm_log import Policy, moment_of, suppression_of, within
from tisat_serve.cli.feedback import _author, ask
from tisat_serve.cli.serve import app as serving
from tisat_serve.cluster.shards import Shard, move
from tisat_serve.config_tables import Config
from tisat_serve.engine.admission import Admission
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.group import Group
from tisat_serve.engine.row_encoding import unpack_body, unpack_brief
from tisat_serve.feedback.operator import OperatorFeedback
from tisat_serve.folder.archive import briefs_of, rows_of
from tisat_serve.folder.forgetting import forget_old
from tisat_serve.folder.replay import stored_rows
from tisat_serve.reload import apply
from tisat_serve.service import BusyError, Service
from tisat_serve.sinks.alertmanager import Alertmanager
from tisat_serve.sinks.outbox import Webhook
from tisat_serve.sources.kafka import KafkaSink, KafkaSource
from tisat_serve.sources.promql import PromQL
from tisat_serve.store import FILE, Store
from tisat_serve.structs import Row
from tisat_serve.views.fleet_view import FleetView


@pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")
def test_of_a_rule_that_feeds_back_what_if_at_its_own_threshold_is_the_book(watch, tmp_path):
    with Store(tmp_path) as store:
        engine = Engine(store, [Group("main", watch.recalibrated(rule="paper"))], clock=lambda: float(START))
        for rows in requests_of():
            engine.ingest(rows)
        view = FleetView(engine)
        book = view.alarms(sort="statistic")
        same = view.what_if(group="main", threshold=view.entity("e1").threshold)
        assert {(one.entity, one.raised, one.cleared) for one in same.alarms} == {(one.entity, one.raised, one.cleared) for one in book}  # fmt: skip
        assert not same.exact
        assert "it was run again over the stored evidence" in same.sentences[-1]
        assert view.what_if(entity="e1", budget="1/100 rows").threshold > 0
        people = OperatorFeedback(engine, view)
        for one in book:
            people.label(one.id, "false", author="anna")
        assert {one.kind for one in view.proposals()} == {"pattern"}, "its calibration keeps no levels to propose from"


def test_history_older_than_it_is_kept_is_forgotten_and_no_other(engine_in, tmp_path):
    engine = engine_in(tmp_path)
    for rows in requests_of():
        engine.ingest(rows)
    for cell in engine.cells.values():
        engine.saver.save([cell])
    before = briefs_of(engine.entities, "e1").times
    assert forget_old(engine) == 0
    engine.groups["main"].retention = 3600.0
    assert forget_old(engine) > 0
    after = briefs_of(engine.entities, "e1").times
    assert set(before[before >= before[-1] - 3600 * 10**9]) <= set(after) < set(before)
    for ask_of in (briefs_of, rows_of):
        with pytest.raises(InputError, match=r"must know the entity. Got 'nobody'"):
            ask_of(engine.entities, "nobody")


def test_another_group_with_another_model_is_refused_and_sources_go_on(engine_in, tmp_path, model):
    service = Service(engine_in(tmp_path)).start()
    stopped = []
    service.parts.append(SimpleNamespace(name="s", error="", stop=lambda: stopped.append(True)))
    with service.engine.store.writing() as write:
        write.execute("INSERT OR REPLACE INTO meta VALUES ('model:more', 'of another model')")
    groups = [{"name": name, "model": str(model), "lateness": "9 s"} for name in ("main", "more")]
    config = msgspec.convert({"data": str(tmp_path), "group": groups}, Config)
    with pytest.raises(InputError, match="must be used with the model it began with"):
        apply(service, config)
    assert not stopped, "nothing has changed"
    assert service.engine.groups["main"].lateness == 0.0
    service.stop()


@pytest.mark.parametrize("rules", [["temp:up"], ["temp:down"], ["*:up"], ["temp:2"], ["temp:90%"], ["temp"], ["flow"], ["temp:up:1", "flow:up"]])  # fmt: skip
def test_a_rule_of_the_service_suppresses_what_the_command_line_does(engine_in, tmp_path, watch, rules):
    engine = engine_in(tmp_path)
    people = OperatorFeedback(engine, FleetView(engine))
    for text in rules:
        assert people.rule("e*", text, author="ann").suppress == text
    people.rule("other-*", "temp", author="ann")
    for request in requests_of():
        engine.ingest(request)
    found = engine.store.read("SELECT suppressed, document FROM alarms WHERE sort = 'statistic'")
    assert found
    parsed = [Suppression.parse(text) for text in rules]
    for why, document in found:
        said = suppressed_by(Alarm.from_json(json.loads(document)), parsed)
        assert "; ".join(part.partition(": ")[2] for part in why.split("; ")) == said


def test_rules_of_an_earlier_version_suppress_what_they_did(tmp_path):
    """Before, a rule said what matters: the direction to be told of, and the least change worth it."""
    before = [("up", None, None), ("down", None, None), ("both", 2.0, None), ("both", None, 0.1), ("up", 2.0, None), ("down", 2.0, 0.1), ("both", 2.0, 0.1)]  # fmt: skip
    with Store(tmp_path) as store:
        store._writer.executescript(
            "DROP TABLE acknowledgements; DROP TABLE patterns; DROP INDEX alarms_incident; ALTER TABLE alarms DROP COLUMN incident; PRAGMA user_version=3;"
        )
        store._writer.executemany(
            "INSERT INTO rules VALUES (NULL, 'e', ?, ?, ?, ?, 'ann', '', 0, NULL)",
            [(f"c{k}", *rule) for k, rule in enumerate(before)],
        )
    with Store(tmp_path) as store:
        rules = [suppression_of(one) for one in store.records("SELECT * FROM rules")]
    for k, (direction, least, relative) in enumerate(before):
        for change in (-3.0, -0.6, -0.2, 0.2, 0.6, 3.0):
            wrong_way = (direction == "up" and change < 0) or (direction == "down" and change > 0)
            small = (least is not None and abs(change) < least) or (relative is not None and abs(change) < relative * 5)
            reason = Reason(f"c{k}", 1.0, 5.0 + change, 5.0, None)
            assert any(rule.covers(reason) for rule in rules) == (wrong_way or small), (k, change)


def test_windows_come_again_and_stamps_are_nanoseconds():
    once = {"start": 100, "stop": 200, "every": None}
    daily = {"start": 100, "stop": 200, "every": 1e-6}
    assert [within(once, at) for at in (99, 100, 199, 200, 1150)] == [False, True, True, False, False]
    assert [within(daily, at) for at in (99, 150, 250, 1150, 1200)] == [False, True, False, True, False]
    assert (moment_of(None, 7), moment_of(1.5, 7), moment_of("1970-01-01T00:00:01Z", 7)) == (7, 1_500_000_000, 10**9)


def test_pieces_of_another_length_are_no_history():
    with pytest.raises(ValueError, match="must have the length its rows need"):
        unpack_brief(b"x" * 17, 1)
    with pytest.raises(ValueError, match="must have the length its rows need"):
        unpack_body(b"", 0)


def test_a_store_of_the_future_and_one_that_is_none_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / FILE).write_bytes(b"nonsense" * 1000)
    with pytest.raises(InputError, match=r"must be a store of tisat serve. It cannot be read"):
        Store(tmp_path / "a")
    Store(tmp_path / "b").close()
    there = sqlite3.connect(tmp_path / "b" / FILE)
    there.execute("PRAGMA user_version = 99")
    there.close()
    with pytest.raises(InputError, match="Got 99: it belongs to another tisat"):
        Store(tmp_path / "b")
    with pytest.raises(InputError, match="must hold a store of tisat serve"):
        list(stored_rows(tmp_path))


def test_entities_move_only_where_they_can(engine_in, tmp_path):
    for name in ("one", "two"):
        engine = engine_in(tmp_path / name)
        engine.ingest(requests_of()[0][: 4 if name == "one" else 1])
        engine.close()
        engine.store.close()
    for names, source, must in (
        (["e9"], "one", "first folder must know the entity. Got 'e9'"),
        (["e0"], "one", "second folder must not know the entity yet"),
        (["e1"], "none", "must hold a store of tisat serve"),
    ):
        with pytest.raises(InputError, match=must):
            move(names, tmp_path / source, tmp_path / "two")
    engine = engine_in(tmp_path / "one", save_rows=1000)
    engine.ingest(requests_of()[1])
    engine.store.close()  # killed: the rows are only in the log
    with pytest.raises(InputError, match="are only in the log: start that service and stop it once"):
        move(["e1"], tmp_path / "one", tmp_path / "two")


def test_a_shard_keeps_its_folder(engine_in, tmp_path):
    engine = engine_in(tmp_path)
    Shard.parse("1/2").settle(engine)
    Shard.parse("1/2").settle(engine)
    with pytest.raises(InputError, match="It is 1/2, not 2/2"):
        Shard.parse("2/2").settle(engine)
    for bad in ("2", "0/2", "3/2", "a/b", "/", "1/999999"):
        with pytest.raises(InputError, match="--shard must be one of several"):
            Shard.parse(bad)
    outcomes = engine.ingest([Row(f"m{k}", row, START) for k, row in enumerate(plant_rows(8).tolist())])
    assert {one.status for one in outcomes} > {"refused"}
    assert all("must be sent to shard 2/2. This is 1/2" in one.reason for one in outcomes if one.status == "refused")


@pytest.mark.parametrize(("make", "must"), [
    (lambda: Webhook("w", "ftp://x"), "url of a webhook must begin with http"),
    (lambda: Alertmanager("a", "x"), "url of Alertmanager must begin with http"),
    (lambda: PromQL(name="p", url="x", queries={"a": "b"}), "url of a PromQL source must begin with http"),
    (lambda: PromQL(name="p", url="http://x", queries={}), "at least one query"),
    (lambda: PromQL(name="p", url="http://x", queries={"a": "b"}, step=0.01), "step of a PromQL source must be 0.1 to 86400"),
    (lambda: KafkaSource("k", "", "t", "g"), "must have brokers, a topic and a consumer group"),
    (lambda: KafkaSink("k", "b", ""), "must have brokers and a topic"),
    (lambda: ask("ftp://x", "/"), "--url must begin with http"),
])  # fmt: skip
def test_what_cannot_be_reached_is_refused_at_once(make, must):
    with pytest.raises(InputError, match=must):
        make()


def test_trouble_is_said_once_and_tried_again(engine_in, tmp_path, monkeypatch):
    service = Service(engine_in(tmp_path))
    said = []
    service.say = said.append

    def watched(part, method, stop_after):
        calls = []

        def fail(*_):
            calls.append(True)
            if len(calls) >= stop_after:
                part._end.set()
            raise OSError("no answer")

        monkeypatch.setattr(part, method, fail)
        part._end.wait = part._wake.wait = lambda *_: part._end.is_set()
        part._service = service
        part._run()
        return part

    manager = watched(Alertmanager("am", "http://127.0.0.1:1", every=1.0), "send_alerts", 3)
    assert (manager.failed, manager.report()["failed"]) == (3, 3)
    assert [one for one in said if one.startswith("am: ")] == ["am: the alarms could not be told to http://127.0.0.1:1: OSError: no answer"]  # fmt: skip
    query = watched(PromQL(name="p", url="http://127.0.0.1:1", queries={"a": "b"}), "cycle", 2)
    assert (query.failed, query.error, said[-1]) == (2, "no answer", "p: no answer")


class Letter:
    """A message of Kafka."""

    def __init__(self, offset, value, *, key=b"e1", error=None):
        self._parts = {"offset": offset, "value": value, "key": key, "error": error, "partition": 0, "timestamp": (1, START * 1000)}  # fmt: skip

    def __getattr__(self, name):
        return lambda: self._parts[name]


def test_a_topic_is_taken_once_and_kept_while_the_service_is_busy(monkeypatch):
    monkeypatch.setattr("tisat_serve.sources.kafka.clocks.sleep", lambda _: None)
    source = KafkaSource("k", "127.0.0.1:1", "rows", "g")
    tries, said = [], []

    def ingest(rows, mark):
        tries.append(([row.time for row in rows], dict(mark.next)))
        if len(tries) < 3:
            raise BusyError("busy", 1)

    source._service = SimpleNamespace(ingest=ingest, say=said.append)
    row = json.dumps({"values": [1.0]}).encode()
    letters = [Letter(4, row), Letter(5, b"\xff"), Letter(6, row, key=None), Letter(7, row), Letter(8, row, error="lost")]  # fmt: skip
    source.next = {0: 5}
    source._take(letters)
    assert tries == [([START * 1000], {0: 8})] * 3, "asked again until it is taken"
    assert (source.rows, source.refused, source.next, source.error) == (1, 2, {0: 8}, "")
    assert said == ["k: lost", "k: busy"], "once for as long as it stays so"
    source._take(letters[:4])
    assert len(tries) == 3, "read already"
    source._end.set()
    tries.clear()
    source._take([Letter(9, row)])
    assert source.next == {0: 8}, "the end came first: it is read again later"


def test_who_decides_and_what_the_service_says(monkeypatch):
    def refuse(body):
        def answer(*_, **__):
            raise urllib.error.HTTPError("http://x", 409, "Conflict", {}, io.BytesIO(body))

        monkeypatch.setattr("tisat_serve.http_client._opener", lambda _: answer)
        with pytest.raises(InputError) as told:
            ask("http://x", "/api", {"a": 1})
        return str(told.value)

    monkeypatch.setenv("TISAT_TOKEN", "t")
    assert refuse(b'{"error": "It must be open."}') == "It must be open."
    assert refuse(b"nonsense") == "The service at http://x answered 409."
    monkeypatch.setattr("getpass.getuser", lambda: "anna")
    assert _author() == "anna"

    def nobody():
        raise OSError

    monkeypatch.setattr("getpass.getuser", nobody)
    assert _author()


def test_a_replay_of_kept_rows_begins_where_it_is_told(engine_in, model, tmp_path):
    engine = engine_in(tmp_path / "w")
    engine.ingest([Row("e1", row, 60.0 * k) for k, row in enumerate(plant_rows(50).tolist())])
    engine.close()
    words = ["replay", "--model", str(model), "--data", str(tmp_path / "w")]
    whole = CliRunner().invoke(serving, [*words, "--json"])
    assert sum(json.loads(whole.stdout)["rows"].get(word, 0) for word in ("ok", "warming up")) == 50
    part = CliRunner().invoke(serving, [*words, "--start", "600", "--stop", "1200", "--json"])
    assert sum(json.loads(part.stdout)["rows"].get(word, 0) for word in ("ok", "warming up")) == 10


def test_of_many_groups_a_refused_row_is_told_the_first():
    groups = {f"m{n}": SimpleNamespace(owns=lambda name: False) for n in range(10)}
    read = Admission(SimpleNamespace(groups=groups, cells={}, resting={}), Policy(), 1)._home
    said = "m0, m1, m2, m3, m4, m5, m6, m7 and 2 more"
    assert read(Row("x", {})).endswith(f"'x' fits none of {said}.")
    assert f"one of {said}. Got 'g'" in read(Row("x", {}, group="g"))
