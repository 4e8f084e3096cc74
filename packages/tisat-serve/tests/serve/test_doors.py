"""TLS with a certificate made here, notifications to people through apprise, one message for what begins together, and the verbs."""

import json
import shutil
import ssl
import subprocess
import time
import urllib.request

import numpy as np
import pytest
from typer.testing import CliRunner

from serve.conftest import CHANNELS, START, local_client, plant_rows, requests_of
from serve.processes import Process
from serve.receivers import Receiver
from serve.test_sinks_sources import until
from tisat_serve.api.app import make_app
from tisat_serve.cli.serve import app
from tisat_serve.folder.replay import replay, stored_rows
from tisat_serve.security import Tokens
from tisat_serve.service import Service
from tisat_serve.sinks.outbox import Apprise, Outbox, Webhook
from tisat_serve.structs import Row


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_with_a_certificate_made_here(model, tmp_path):
    """Listens with TLS; who does not trust the certificate gets nothing, nor who asks in plain text."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    config = tmp_path / "serve.toml"
    config.write_text(
        f'data = "watch"\n[listen]\ncertificate = "cert.pem"\nkey = "key.pem"\n[[group]]\nname = "main"\nmodel = "{model}"\n'
    )
    with Process("--config", config) as served:
        assert served.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        with urllib.request.urlopen(served.url + "/readyz", timeout=60, context=trusting) as answer:
            assert answer.read() == b"ready\n"
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(served.url + "/readyz", timeout=60)
        with pytest.raises(OSError):
            urllib.request.urlopen(served.url.replace("https", "http") + "/readyz", timeout=60)


def all_at_once(count=300):
    """Rows of four entities that all break at row 120, and what comes after until the alarms are over."""
    made = {f"e{i}": plant_rows(count, seed=i, fault=120) for i in range(4)}
    return [Row(name, made[name][k].tolist(), START + 60 * k) for k in range(count) for name in made]


@pytest.mark.filterwarnings("ignore:.*imghdr:DeprecationWarning")  # of apprise, on Python 3.11
@pytest.mark.parametrize("kind", ["webhook", "apprise"])
def test_alarms_that_begin_together_are_one_message(engine_in, tmp_path, kind):
    with Receiver() as receiver:
        if kind == "webhook":
            sink = Webhook("out", receiver.url, together=1.0)
        else:
            pytest.importorskip("apprise", reason="pip install '.[notify]'")
            sink = Apprise("out", [receiver.url.replace("http://", "json://")], together=1.0)
        outbox = Outbox([sink])
        service = Service(engine_in(tmp_path, routes=("out",), clock=time.time), parts=[outbox]).start()
        service.settings.url = "http://console"
        service.ingest(all_at_once())
        until(lambda: outbox.sent >= 2)
        service.stop()
        assert not service.engine.store.read("SELECT 1 FROM outbox")
        alarms = service.view.alarms(sort="statistic")
        assert {one.entity for one in alarms} == {"e0", "e1", "e2", "e3"}
        got = [json.loads(body) for _, _, body in receiver.requests]
        assert len(got) == 2, "one for the beginning and one for the end, not eight"
        raised = got[0]
        assert raised["title"].startswith("4 entities together: ")
        text = raised["text" if kind == "webhook" else "message"]
        for one in alarms:
            assert one.entity in text
            assert f"http://console/alarm/{one.id}" in text
        if kind == "webhook":
            assert {one["id"] for one in raised["alarms"]} == {one.id for one in alarms}
        else:
            assert raised["type"] == "warning"


def test_a_message_that_is_not_taken_stays_whole(engine_in, tmp_path):
    with Receiver() as receiver:
        receiver.code = 500
        outbox = Outbox([Webhook("out", receiver.url, together=0.2)])
        service = Service(engine_in(tmp_path, routes=("out",), clock=time.time), parts=[outbox]).start()
        service.ingest(all_at_once(150))
        until(lambda: outbox.failed)
        receiver.code = 200
        until(lambda: outbox.sent)
        service.stop()
        first, second = (json.loads(body) for _, _, body in (receiver.requests[0], receiver.requests[-1]))
        assert first["key"] == second["key"]
        assert len(second["alarms"]) == 4


def test_every_address_says_which_methods_it_takes(engine_in, tmp_path):

    service = Service(engine_in(tmp_path)).start()
    client = local_client(make_app(service, Tokens(service.engine.store)))
    answer = client.options("/api/v1/proposals")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].replace(" ", "").split(",")) == {"GET", "HEAD", "POST"}
    assert client.delete("/api/v1/alarms/x/label").headers["allow"] == "POST"
    made = client.post("/api/v1/refits", json={"author": "eva"})
    assert made.status_code == 400
    assert "must have rows to learn from" in made.json()["error"]
    service.stop()


def test_replay_says_what_the_service_said(engine_in, watch, tmp_path):
    engine = engine_in(tmp_path)
    for request in requests_of():
        engine.ingest(request)
    service = Service(engine)
    engine.close()
    found, counts = replay(watch, stored_rows(tmp_path))
    book = [one for one in service.view.alarms() if one.sort == "statistic"]
    assert sorted(one.id for one in found) == sorted(one.id for one in book), "the same alarms, by their ids"
    assert counts["ok"] + counts["warming up"] == 4 * 200
    later, _ = replay(watch, stored_rows(tmp_path, match="e[23]", start=START + 6000.0))
    assert not [one for one in later if one.entity == "e1"]


def test_replay_of_files_and_its_refusals(model, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = plant_rows(200, seed=4, fault=120)
    times = np.datetime64(START, "s") + 60 * np.arange(200).astype("timedelta64[s]")
    table = pa.table({"time": times.astype("datetime64[ns]"), **{name: rows[:, c] for c, name in enumerate(CHANNELS)}})
    pq.write_table(table, tmp_path / "pump.parquet")
    run = CliRunner().invoke(app, ["replay", "--model", str(model), str(tmp_path / "pump.parquet")])
    assert run.exit_code == 0, run.output
    assert "pump  statistic" in run.output
    assert "1 alarm at 1/1000 rows; rows: 190 ok, 10 warming up" in run.output
    refused = CliRunner().invoke(app, ["replay", "--model", str(model)])
    assert "either files or --data" in str(refused.exception)


def test_people_decide_from_the_command_line(model, tmp_path):
    """From a running service: a refit, its shadow, taken, taken back; each says what it did."""
    with Process("--model", model, "--data", tmp_path / "watch", "--silent-after", "1 day") as served:
        for rows in requests_of(count=300, size=600):
            served.post(
                "/api/v1/rows", [{"entity": one.entity, "time": one.time, "values": one.values} for one in rows]
            )

        def tisat(*words):
            run = CliRunner().invoke(app, [*words, "--url", served.url])
            assert run.exit_code == 0, (run.output, run.exception)
            return run.output

        assert "another model" in tisat("refit", "--reason", "spring")
        assert "No row has come since" in tisat("proposals", "--shadow")
        assert "taken" in tisat("take", "1")
        until(lambda: {one["status"] for one in served.get("/api/v1/entities")} <= {"ok"})
        assert "reverted" in tisat("revert", "1")
        again = CliRunner().invoke(app, ["leave", "1", "--url", served.url])
        assert "must be open" in str(again.exception)
    gone = CliRunner().invoke(app, ["proposals", "--url", "http://127.0.0.1:9"])
    assert "Nothing answers" in str(gone.exception)
