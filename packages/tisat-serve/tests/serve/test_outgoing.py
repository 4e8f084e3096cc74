"""What is sent out: where it was told to go and nowhere else, each sink for itself, and secrets to nobody but their owner."""

import json
import socket
import threading
import time

import msgspec
import pytest

from serve.conftest import local_client, requests_of
from serve.receivers import Receiver
from serve.test_configured import told
from serve.test_sinks_sources import until
from tisat.errors import InputError, TisatError
from tisat_serve.api.app import make_app
from tisat_serve.api.table import about
from tisat_serve.cluster.peers import Peers
from tisat_serve.config import parts_of
from tisat_serve.console import routes
from tisat_serve.http_client import ask
from tisat_serve.reload import apply
from tisat_serve.security import Tokens, make_token
from tisat_serve.service import Service, Settings
from tisat_serve.sinks.alertmanager import Alertmanager
from tisat_serve.sinks.outbox import Outbox, Webhook
from tisat_serve.sources.promql import PromQL


@pytest.fixture
def dead():
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def accept():
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for one in held:
            one.close()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_nothing_follows_it(engine_in, tmp_path, code):
    with Receiver() as other, Receiver() as hook:
        hook.code, hook.location = code, other.url + "/x"
        outbox = Outbox([Webhook("hook", hook.url, headers={"Authorization": "Bearer HOOK-SECRET"})])
        service = Service(engine_in(tmp_path, routes=("hook",), clock=time.time), parts=[outbox]).start()
        service.ingest([row for rows in requests_of(count=150) for row in rows])
        until(lambda: outbox.failed)
        assert f"hook: HTTPError: HTTP Error {code}" in service.problems[0]
        assert "redirects are not followed" in service.problems[0]
        service.stop()
        assert service.engine.store.read("SELECT count(*) FROM outbox")[0][0] >= 1, "it is kept"
        assert (outbox.sent, other.requests) == (0, [])
        source = PromQL("p", hook.url, {"a": "b"}, headers={"Authorization": "Bearer PROM-SECRET"})
        with pytest.raises(InputError, match=f"It says: {code} "):
            source.ask("b", 0.0, 1.0)
        with pytest.raises(OSError, match=str(code)):
            ask(hook.url, {"Authorization": "Bearer PEER"}, timeout=5.0)
        assert other.requests == []


@pytest.mark.slow
def test_one_dead_sink_is_named_and_delays_no_other(engine_in, tmp_path, dead, monkeypatch):
    monkeypatch.setattr("tisat_serve.sinks.outbox.TIMEOUT", 5.0)
    monkeypatch.setattr("tisat_serve.sinks.outbox.LINGER", 0.5)
    with Receiver() as receiver:
        outbox = Outbox([Webhook("dead", dead), Webhook("good", receiver.url), Webhook("gone", "http://127.0.0.1:9")])
        routes = ("dead", "good", "gone", "of before")
        service = Service(engine_in(tmp_path, routes=routes, clock=time.time), parts=[outbox]).start()
        begin = time.monotonic()
        service.ingest([row for rows in requests_of(count=150, faulty=("e0", "e1", "e2", "e3")) for row in rows])
        until(lambda: len({json.loads(body)["entity"] for _, _, body in receiver.requests}) == 4)
        assert time.monotonic() - begin < 4.0, "not after the other's patience"
        until(lambda: any("dead: " in one and "gone: " in one for one in service.problems))
        assert "good" not in service.problems[0]
        assert outbox.report()["failing"] == 2
        begin = time.monotonic()
        service.stop()
        assert time.monotonic() - begin < 4.0
    kept = dict(service.engine.store.read("SELECT sink, count(*) FROM outbox GROUP BY sink"))
    assert "good" not in kept
    assert kept["dead"] >= 4
    again = Outbox([Webhook("dead", dead)])
    again.start(service)
    again.stop()
    assert set(dict(service.engine.store.read("SELECT sink, 1 FROM outbox"))) == {"dead"}, (
        "others are not there any more"
    )


def test_no_secret_is_in_a_log_an_answer_or_a_page(engine_in, tmp_path):
    address = "http://user:pw-secret@127.0.0.1:9"
    sink = Alertmanager("am", address, every=0.1, headers={"X-Key": "pw-secret"})
    query = PromQL("p", address, {"a": "b"}, headers={"X-Key": "pw-secret"})
    hook = Outbox([Webhook("hook", address + "/x", "pw-secret")])
    settings = Settings(peers=(address,))
    service = Service(engine_in(tmp_path, routes=("hook",), clock=time.time), settings, parts=[sink, query, hook])
    said = []
    service.say = said.append
    service.start()
    service.ingest([row for rows in requests_of(count=150) for row in rows])
    until(lambda: sink.failed and query.failed and hook.failed)
    shown = [*said, msgspec.json.encode(about(service)).decode(), msgspec.json.encode(Peers(service).shards()).decode(), repr(query)]  # fmt: skip
    service.stop()
    assert len(said) >= 3
    assert "pw-secret" not in "".join(shown).replace(repr(query.url), "")
    assert "http://127.0.0.1:9" in shown[0]


def test_who_we_are_comes_from_files_and_the_environment_for_every_server(model, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("T1\n")
    monkeypatch.setenv("PASSWORD", "P1")
    with Receiver() as receiver:
        address = receiver.url.replace("http://", "http://u:p%40x@")
        sinks = [
            {"kind": "alertmanager", "name": "a", "url": receiver.url, "token_file": str(tmp_path / "token")},
            {"kind": "webhook", "name": "w", "url": receiver.url, "user": "u", "password_env": "PASSWORD", "headers": {"X-Site": "north"}},
        ]  # fmt: skip
        source = {"kind": "promql", "name": "p", "url": address, "queries": {"a": "b"}}
        parts, _ = parts_of(told(model, tmp_path, sinks=sinks, sources=[source]))
        manager, outbox, query = parts
        ask(manager.url, manager._headers, b"{}", timeout=5.0)
        hook = outbox.workers[0].sink
        ask(hook.url, hook._headers, b"{}", timeout=5.0)
        with pytest.raises(InputError):
            query.ask("b", 0.0, 1.0)
        sent = [headers.get("Authorization") for _, headers, _ in receiver.requests]
        assert sent == ["Bearer T1", "Basic dTpQMQ==", "Basic dTpwQHg="]
        assert receiver.requests[1][1]["X-Site"] == "north"
        assert all("u:p" not in headers["Host"] for _, headers, _ in receiver.requests)
    with pytest.raises(InputError, match="file of certificates"):
        parts_of(told(model, tmp_path, sinks=[{**sinks[0], "ca": str(tmp_path / "token")}]))


def test_clients_of_brokers_are_made_once_all_is_checked_and_end_at_a_reload(service, model, tmp_path, monkeypatch):
    alive = []

    class Client:
        def __init__(self, *_, client_id, **__):
            self.id = client_id
            alive.append(self)

        def __getattr__(self, name):
            return lambda *_, **__: None

        def is_connected(self):
            return True

        def disconnect(self):
            alive[:] = [one for one in alive if one is not self]

    monkeypatch.setattr("paho.mqtt.client.Client", Client)
    config = told(model, tmp_path, sinks=[{"kind": "mqtt", "name": "m"}], sources=[{"kind": "mqtt", "name": "s", "topic": "{entity}"}])  # fmt: skip
    for _ in range(3):
        apply(service, config)
        assert sorted(one.id.rpartition("-")[0] for one in alive) == ["tisat-m-out", "tisat-s"]
    wrong = msgspec.structs.replace(
        config, group=[msgspec.structs.replace(config.group[0], model=str(tmp_path / "no"))]
    )
    for _ in range(3):
        with pytest.raises(TisatError):
            apply(service, wrong)
    assert len(alive) == 2
    service.stop()
    assert not alive


def test_a_sink_that_failed_is_a_problem_on_every_page_until_it_succeeds(engine_in, tmp_path, monkeypatch):
    monkeypatch.setattr("tisat_serve.sinks.outbox.LONGEST_WAIT", 0.0)
    with Receiver() as receiver:
        url = receiver.url
    hook, manager = Outbox([Webhook("hook", url)]), Alertmanager("am", url, every=0.1)
    service = Service(engine_in(tmp_path, routes=("hook",), clock=time.time), parts=[hook, manager]).start()
    client = local_client(make_app(service, Tokens(service.engine.store), more=routes(service)))
    until(lambda: any("am: the alarms could not be told" in one for one in service.problems))
    assert manager.failed, "though there is nothing to tell"
    service.ingest([row for rows in requests_of(count=200) for row in rows])
    until(lambda: any("hook: " in one for one in service.problems))
    (alarm, *_) = service.view.alarms()
    for address in ("/", "/alarms", f"/alarm/{alarm.id}", "/entity/e1", "/budget", "/whatif", "/proposals", "/care"):
        banner = client.get(address).text.partition('id="problems"')[2].partition("</div>")[0]
        assert "am: the alarms could not be told" in banner, address
        assert "hook: " in banner, address
    make_token(service.engine.store, "ana", ["read"], 0.0)
    assert "could not be told" not in client.get("/login").text, "nothing to who is not logged in"
    service.stop()

    monkeypatch.setattr("tisat_serve.sinks.outbox.LONGEST_WAIT", 3600.0)
    service.engine.store.close()
    restarted = engine_in(tmp_path, routes=("hook",), clock=time.time)
    with restarted.store.writing() as write:
        write.execute("UPDATE outbox SET due = due + 3600 WHERE id != (SELECT min(id) FROM outbox)")
        write.execute("UPDATE outbox SET due = ? WHERE id = (SELECT min(id) FROM outbox)", (time.time() + 1.0,))
    with Receiver() as receiver:
        hook = Outbox([Webhook("hook", receiver.url)])
        service = Service(restarted, parts=[hook]).start()
        assert any("hook: " in one for one in service.problems), "as before the restart"
        until(lambda: not service.engine.store.read("SELECT 1 FROM outbox"))
        assert service.problems == []
        service.stop()
