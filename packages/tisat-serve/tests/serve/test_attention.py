"""What people do with an alarm: take it on, snooze it, take a label back, carry a table away; and the first row they send."""

import csv
import html
import io
import re
import shlex
import time

import pytest

from serve.conftest import START, local_client, requests_of
from serve.receivers import Receiver
from serve.test_hostile import Listening
from serve.test_sinks_sources import until
from tisat.errors import InputError, NotFoundError
from tisat_serve.api.app import make_app
from tisat_serve.console import routes
from tisat_serve.security import Tokens
from tisat_serve.service import Service
from tisat_serve.sinks.alertmanager import Alertmanager
from tisat_serve.structs import Row


@pytest.fixture
def filled(service):
    for rows in requests_of():
        service.ingest(rows)
    return service


@pytest.fixture
def client(filled):
    return local_client(make_app(filled, Tokens(filled.engine.store), more=routes(filled)))


def test_an_alarm_is_taken_on_and_says_by_whom(client, filled):
    alarm = filled.view.alarms(sort="statistic")[0]
    assert (alarm.acknowledged, alarm.snoozed) == ("", None)
    done = client.post(f"/api/v1/alarms/{alarm.id}/acknowledge", json={"author": "eva", "reason": "on my way"})
    assert done.json()["author"] == "eva"
    assert filled.view.alarm(alarm.id).alarm.acknowledged == "eva"
    assert "eva is on it" in client.get(f"/alarm/{alarm.id}").text
    assert "eva" in client.get("/alarms").text
    assert filled.view.journal()[0]["what"] == f"acknowledge {alarm.id}"
    assert client.post("/api/v1/alarms/none/acknowledge", json={}).status_code == 404
    assert client.post(f"/api/v1/alarms/{alarm.id}/acknowledge", json={"minutes": -1}).status_code == 422
    with pytest.raises(NotFoundError):
        filled.feedback.acknowledge("none", author="eva")
    with pytest.raises(InputError):
        filled.feedback.acknowledge(alarm.id, author=" ")


def test_a_snoozed_alarm_is_told_again_when_its_time_is_over(engine_in, tmp_path):
    with Receiver() as receiver:
        sink = Alertmanager("am", receiver.url)
        service = Service(engine_in(tmp_path, clock=time.time))
        sink._service = service
        for rows in requests_of(count=125):
            service.engine.ingest(rows)
        (alarm,) = service.view.alarms(active=True, entity="e1")

        def told():
            receiver.requests.clear()
            sink.send_alerts()
            return "".join(body.decode() for _, _, body in receiver.requests).count(alarm.id) > 0

        assert told()
        service.feedback.acknowledge(alarm.id, author="eva", minutes=60.0)
        assert not told()
        service.feedback.acknowledge(alarm.id, author="eva", minutes=1e-9)
        assert told()


def test_a_label_is_taken_back_on_the_page(client, filled):
    alarm = filled.view.alarms(sort="statistic")[0].id
    assert "take the label back" not in client.get(f"/alarm/{alarm}").text
    client.post(f"/api/v1/alarms/{alarm}/label", json={"label": "false", "author": "eva"})
    assert 'value="unmarked">Undo: take the label back' in client.get(f"/alarm/{alarm}").text
    client.post(f"/api/v1/alarms/{alarm}/label", json={"label": "unmarked", "author": "eva"})
    assert filled.view.alarm(alarm).alarm.label == "unmarked"
    assert filled.view.ledger().fleet.false == 0


def test_every_table_can_be_carried_away(client, filled):
    filled.ingest([Row("=cmd|' /C calc'!A0", [60.0, 5.0, 1.0], START)])
    for path in ("entities", "alarms", "labels", "ledger", "proposals", "pauses", "rules", "journal"):
        answer = client.get(f"/api/v1/{path}?format=csv")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert f'filename="{path}.csv"' in answer.headers["content-disposition"]
        table = list(csv.DictReader(io.StringIO(answer.text)))
        whole = client.get(f"/api/v1/{path}").json()
        assert len(table) == (1 + len(whole["groups"]) + len(whole["entities"]) if path == "ledger" else len(whole))
    names = [row["name"] for row in csv.DictReader(io.StringIO(client.get("/api/v1/entities?format=csv").text))]
    assert "'=cmd|' /C calc'!A0" in names, "a spreadsheet runs nothing"
    refused = client.get("/api/v1/about?format=csv")
    assert refused.status_code == 422
    assert "must be had as JSON" in refused.json()["error"], "it is no table"
    for page in ("/alarms", "/budget", "/"):
        assert "format=csv" in client.get(page).text


def test_the_line_on_the_empty_page_works_when_it_is_pasted(service):
    app = make_app(service, Tokens(service.engine.store), more=routes(service))
    with Listening(service) as port:
        page = local_client(app, base_url=f"http://127.0.0.1:{port}").get("/").text
        line = html.unescape(re.search(r"<pre class=\"wide\"><code>(.*?)</code></pre>", page)[1])
        words = shlex.split(line)
        assert words[0] == "curl"
        options = dict(zip(words[1:-1:2], words[2:-1:2], strict=True))
        import urllib.request

        name, _, value = options["-H"].partition(": ")
        request = urllib.request.Request(words[-1], options["-d"].encode(), {name: value})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert b'"taken":1,"refused":0' in answer.read()
    assert set(service.engine.cells) == {"machine-1"}
    assert "<pre" not in local_client(app).get("/").text, "not where rows have come"


def test_the_budget_is_compared_with_false_alarms_alone(client, filled):
    page = client.get("/").text
    assert "false alarms of those allowed, 7 days" in page
    assert 'class="over"' not in page
    for alarm in filled.view.alarms(sort="statistic"):
        client.post(f"/api/v1/alarms/{alarm.id}/label", json={"label": "false", "author": "eva"})
    week = filled.view.ledger().fleet
    assert ('<b class="over">' in client.get("/").text) == week.over


def test_the_last_row_and_its_band_are_series_that_a_dashboard_draws(client, filled, monkeypatch):
    found = {}
    for line in client.get("/metrics/band?match=e[01]").text.splitlines():
        if not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            found[series] = float(value)
    who = 'channel="temp",entity="e1",group="main"'
    value, expected, low, high = (found[f"tisat_{name}{{{who}}}"] for name in ("value", "expected", "expected_lower", "expected_upper"))  # fmt: skip
    history = filled.view.history("e1", points=2000, channels=3)
    temp = next(one for one in history.channels if one.name == "temp")
    assert (value, expected) == (temp.values[-1], temp.expected[-1])
    assert (low, high) == (expected - temp.spread[-1], expected + temp.spread[-1])
    info = filled.view.entity("e1")
    assert found['tisat_statistic{entity="e1",group="main"}'] == info.statistic
    assert found['tisat_entity_threshold{entity="e1",group="main"}'] == info.threshold
    assert 'tisat_score{entity="e0",group="main"}' in found
    assert not any('entity="e2"' in series for series in found)
    monkeypatch.setattr("tisat_serve.views.band.MOST", 3)
    refused = client.get("/metrics/band")
    assert (refused.status_code, refused.json()["parameter"]) == (400, "match")


def test_a_silent_channel_is_counted_as_the_table_shows_it_and_ends_by_itself(service):
    values = [one for rows in requests_of(2, faulty=()) for one in rows]
    for one in values:
        if one.entity == "e0" and one.time >= START + 60 * 60:
            one.values[1] = None
    for k in range(0, len(values), 10):
        service.ingest(values[k : k + 10])
    client = local_client(make_app(service, Tokens(service.engine.store), more=routes(service)))
    (alarm,) = service.view.alarms(active=True)
    assert (alarm.sort, alarm.entity) == ("channel", "e0")
    page = client.get("/").text
    assert "1 of 2 entities has an alarm on." in page
    assert client.get("/api/v1/about").json()["entities"] == {"alarm": 1, "ok": 1}
    assert 'tisat_entities{status="alarm"} 1.0' in client.get("/metrics").text
    assert service.view.entity("e0").alarm == alarm.id
    refused = client.post(f"/api/v1/alarms/{alarm.id}/accept", json={"author": "eva"})
    assert refused.status_code == 409
    assert "it ends when the channel sends values again" in refused.json()["error"]
    assert "/accept" not in client.get(f"/alarm/{alarm.id}").text, "no button"
    service.ingest([Row(entity="e0", values=[60.0, 5.0, 1.0], time=START + 60 * (200 + k)) for k in range(3)])
    until(lambda: service.view.alarm(alarm.id).alarm.cleared is not None)
    assert service.view.entity("e0").silent_channels == []
    assert "is over" in client.post(f"/api/v1/alarms/{alarm.id}/accept", json={"author": "eva"}).json()["error"]
