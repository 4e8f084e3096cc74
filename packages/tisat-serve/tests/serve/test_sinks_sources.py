"""What goes out and what is pulled in, against servers in this process."""

import json
import math
import os
import signal
import time

import pytest

from serve.conftest import START, requests_of, result_lines
from serve.processes import Process
from serve.receivers import Receiver, like_prometheus
from tisat.errors import InputError
from tisat_serve.config import groups_of, parts_of, read_config, settings_of
from tisat_serve.folder import backup as upkeep
from tisat_serve.service import Service
from tisat_serve.sinks.alertmanager import Alertmanager
from tisat_serve.sinks.outbox import Outbox, Webhook, signature
from tisat_serve.sources.promql import PromQL


def until(what, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_webhook_gets_every_alarm_signed_until_it_takes_it(engine_in, tmp_path):
    with Receiver() as receiver:
        receiver.code = 500
        outbox = Outbox([Webhook("hook", receiver.url + "/x", "secret")])
        service = Service(engine_in(tmp_path, routes=("hook",), clock=time.time), parts=[outbox]).start()
        service.settings.url = "http://console"
        for rows in requests_of():
            service.ingest(rows)
        until(lambda: receiver.requests)
        until(lambda: outbox.failed)
        receiver.code = 200
        until(lambda: not service.engine.store.read("SELECT 1 FROM outbox"))
        service.stop()
        alarms = service.view.alarms(sort="statistic")
        assert alarms
        _path, headers, body = receiver.requests[-1]
        assert headers["X-Tisat-Signature"] == signature("secret", headers["X-Tisat-Timestamp"], body)
        got = [json.loads(body) for _, _, body in receiver.requests]
        assert {(one["id"], one["event"]) for one in got} == {
            (a.id, e) for a in alarms for e in ("raised", "cleared") if e == "raised" or a.cleared
        }
        one = next(one for one in got if one["entity"] == "e1")
        assert one["url"] == f"http://console/alarm/{one['id']}"
        assert one["reasons"][0]["channel"] == "temp"
        assert one["budget"] == "1/1000 rows"


def test_alertmanager_is_told_again_and_told_resolved(engine_in, tmp_path):
    with Receiver() as receiver:
        sink = Alertmanager("am", receiver.url, every=0.3, labels={"site": "north"})
        service = Service(engine_in(tmp_path), parts=[sink]).start()
        requests = requests_of(count=300)
        done = 0
        while not service.view.alarms(active=True, sort="statistic"):
            service.ingest(requests[done])
            done += 1
        alarm = service.view.alarms(active=True, sort="statistic")[0].id

        def told():
            return [
                one
                for _, _, body in list(receiver.requests)
                for one in json.loads(body)
                if one["labels"].get("alarm") == alarm
            ]

        until(lambda: len(told()) >= 2)  # and again
        assert told()[0]["labels"]["site"] == "north"
        assert told()[0]["endsAt"] > told()[0]["startsAt"]
        for rows in requests[done:]:
            service.ingest(rows)
        assert service.view.alarm(alarm).alarm.cleared
        ends = told()[-1]["endsAt"]
        until(lambda: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 0.1)) >= told()[-1]["endsAt"][:19])
        service.stop()
        assert ends


def test_promql_fits_goes_live_and_fetches_the_gap(engine_in, tmp_path):
    now = [float(START)]

    def value(query, who, at):
        shift = {"temp": 60.0, "flow": 5.0, "power": 1.0}.get(query, 0.0)
        return shift + math.sin(at / 540.0) if not (who == "b" and query == "flow") else float("nan")

    with Receiver(like_prometheus(value)) as prometheus:
        source = PromQL(
            "prom", prometheus.url, {name: name for name in ("temp", "flow", "power")}, step=60.0, backfill=1200.0
        )
        history = source.history(3600.0, now=START)
        assert [one.name for one in history] == ["a", "b"]
        assert history[0].channels == ("temp", "flow", "power")
        assert len(history[0]) == 61
        import tisat_serve.sources.promql as module

        clock, module.clocks.time = module.clocks.time, lambda: now[0]
        try:
            service = Service(engine_in(tmp_path)).start()
            wait = source.cycle(service)
            assert 0 < wait <= 60
            assert service.view.entity("a").rows == 21
            now[0] += 600.0  # we were away for ten minutes
            PromQL("prom", prometheus.url, source.queries, step=60.0).cycle(service)
            assert service.view.entity("a").rows == 31
            assert service.view.entity("a").late == 0
            service.stop()
        finally:
            module.clocks.time = clock
        prometheus.code = 400
        with pytest.raises(InputError, match=r"must be one .* can answer"):
            source.ask("nonsense(", START, START)
    with pytest.raises(InputError, match=r"must answer\. It does not"):
        source.ask("temp", START, START)


CONFIG = """
data = "watch"
[limits]
entities = 100
[[group]]
name = "pumps"
model = "{model}"
match = "pump-*"
silent_after = "5 min"
[[sink]]
kind = "webhook"
url = "http://127.0.0.1:1/x"
"""


def test_a_configuration_is_read_and_its_mistakes_are_sentences(model, tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text(CONFIG.format(model=model))
    config = read_config(path)
    assert settings_of(config)[1].entities == 100
    assert groups_of(config)[0].silent_after == 300.0
    assert parts_of(config)[1] == ("webhook1",)
    for text, found in (
        ("data = 3", "must be TOML"),
        ("data = 'x'\ngroup = []", "at least one"),
        (CONFIG.format(model=model) + "nonsense = 1\n", "nonsense"),
        (CONFIG.format(model=model).replace("webhook", "pigeon"), "kind of a sink"),
        (CONFIG.format(model=model).replace("entities = 100", "entities = 0"), "at least 1"),
        (CONFIG.format(model="nowhere.tisat"), "File not found"),
    ):
        path.write_text(text)
        with pytest.raises(InputError if "File not found" not in found else Exception, match=found):
            parts_of(settings_of(read_config(path)) and groups_of(read_config(path)) and read_config(path))


def test_backup_restore_and_export_lose_nothing(engine_in, tmp_path):
    engine = engine_in(tmp_path / "one")
    for rows in requests_of():
        engine.ingest(rows)
    upkeep.backup(tmp_path / "one", tmp_path / "copy.db")
    upkeep.restore(tmp_path / "copy.db", tmp_path / "two")
    other = engine_in(tmp_path / "two")
    assert result_lines(other) == result_lines(engine)
    with pytest.raises(InputError, match="must not be there yet"):
        upkeep.backup(tmp_path / "one", tmp_path / "copy.db")
    with pytest.raises(InputError, match="must not hold a store yet"):
        upkeep.restore(tmp_path / "copy.db", tmp_path / "two")
    (tmp_path / "bad.db").write_bytes(b"nonsense" * 1000)
    with pytest.raises(InputError, match="cannot be read"):
        upkeep.restore(tmp_path / "bad.db", tmp_path / "three")
    engine.close()
    done = dict(upkeep.export(tmp_path / "one", tmp_path / "out"))
    assert done == {f"e{i}": 200 for i in range(4)}
    from tisat.series import Series

    series = Series.read(sorted((tmp_path / "out").glob("*e1.parquet"))[0])
    assert series.channels == ("temp", "flow", "power")
    assert len(series) == 200


@pytest.mark.slow
def test_a_hangup_reads_the_configuration_again(model, tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text(CONFIG.format(model=model))
    with Process("--config", path) as service:
        assert service.post("/api/v1/rows", [{"entity": "fan-1", "values": [60, 5, 1], "time": START}])["refused"] == 1
        path.write_text(CONFIG.format(model=model).replace("pump-*", "*").replace("5 min", "7 min"))
        os.kill(service.process.pid, signal.SIGHUP)
        until(
            lambda: (
                service.post("/api/v1/rows", [{"entity": "fan-1", "values": [60, 5, 1], "time": START}])["refused"] == 0
            )
        )
        path.write_text("nonsense")
        os.kill(service.process.pid, signal.SIGHUP)
        assert service.end() == 0
