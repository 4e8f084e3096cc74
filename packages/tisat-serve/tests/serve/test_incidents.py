"""Alarms that belong together: one incident with what moved first; how severe they are and how they end."""

import csv
import io
import json

import msgspec
import pytest

from serve.conftest import START, local_client, plant_rows
from serve.receivers import Receiver
from serve.test_ongoing_alarm import plant
from serve.test_ongoing_alarm import watch as steps_watch  # noqa: F401 - a fixture
from tisat.alarms.incidents import TOGETHER
from tisat.errors import ConflictError, NotFoundError
from tisat_serve.alarms.alarm_groups import _incident
from tisat_serve.alarms.alarm_log import Event, severity_of, write_event
from tisat_serve.api.app import make_app
from tisat_serve.console import routes
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.group import Group
from tisat_serve.security import Tokens
from tisat_serve.service import Service
from tisat_serve.sinks.alertmanager import Alertmanager
from tisat_serve.sinks.message import message_of, message_of_all
from tisat_serve.store import Store
from tisat_serve.structs import Row
from tisat_serve.views.fleet_view import FleetView

FAULTS = {"a": 300, "b": 304, "c": 600}  # the first two begin together, four minutes apart


def rows_of(faults, count=700, channel=0):
    made = {name: plant_rows(count, seed=k) for k, name in enumerate(faults)}
    for name, at in faults.items():
        made[name][at : at + 30, channel] += 8.0
    return [Row(name, made[name][k].tolist(), START + 60 * k) for k in range(count) for name in made]


@pytest.fixture
def filled(service):
    service.ingest(rows_of(FAULTS))
    service.engine.settle()  # the book is written after the answer
    return service


@pytest.fixture
def client(filled):
    return local_client(make_app(filled, Tokens(filled.engine.store), more=routes(filled)))


def of_faults(view):
    """The incidents of the faults; linear-last may raise a false alarm elsewhere."""
    wanted = {START + 60 * at for at in FAULTS.values()}
    return [one for one in view.incidents() if any(abs(one.raised - at) < 600 for at in wanted)]


def test_of_alarms_raised_at_one_row_the_incident_keeps_the_first_in_the_book(filled):
    """The message named one, the console another: their ids are hashes, and onsets are estimates."""
    view, (_, early) = filled.view, of_faults(filled.view)
    alarms = [msgspec.structs.replace(one, raised=early.raised) for one in early.alarms]
    for first in alarms:
        assert _incident(first.id, alarms).entity == first.entity
    assert view.alarm(early.id).alarm.entity == early.entity


def test_alarms_that_begin_together_are_one_incident_with_what_moved_first(filled, client):
    late, early = of_faults(filled.view)
    assert (early.entity, early.channel, early.entities) == ("a", "temp", ["a", "b"])
    assert late.entities == ["c"]
    assert early.words == "a (temp) moved first, then b"
    assert early.raised == min(one.raised for one in early.alarms)
    assert early.cleared == max(one.cleared for one in early.alarms)
    told = client.get("/api/v1/incidents").json()
    assert {one["id"] for one in told} >= {early.id, late.id}
    assert client.get(f"/api/v1/incidents/{early.id}").json()["entity"] == "a"
    assert client.get("/api/v1/incidents/none").status_code == 404
    table = list(csv.DictReader(io.StringIO(client.get("/api/v1/incidents?format=csv").text)))
    assert next(row for row in table if row["id"] == early.id)["entities"] == "a; b"
    page = client.get("/alarms?show=incidents").text
    assert "a (temp) moved first, then b" in page
    assert "Began together" in client.get(f"/alarm/{early.alarms[0].id}").text
    assert [one.entity for one in filled.view.alarm(early.alarms[0].id).together] == ["b"]


def test_the_fleet_says_that_alarms_which_are_on_are_one_incident(service):
    service.ingest(rows_of({"a": 300, "b": 304}, count=310))
    service.engine.settle()
    client = local_client(make_app(service, Tokens(service.engine.store), more=routes(service)))
    page = client.get("/").text
    assert "2 entities, one incident</a>: a (temp) moved first, then b." in page


def test_all_alarms_of_an_incident_are_labelled_and_taken_on_at_once(filled, client):
    early = of_faults(filled.view)[1]
    done = client.post(f"/api/v1/incidents/{early.id}/label", json={"label": "true", "author": "eva"})
    assert len(done.json()) == 2
    client.post(f"/api/v1/incidents/{early.id}/acknowledge", json={"author": "eva"})
    again = filled.view.incident(early.id)
    assert again.label == "true"
    assert {one.acknowledged for one in again.alarms} == {"eva"}
    with pytest.raises(NotFoundError):
        filled.feedback.label_incident("none", "true", author="eva")


def test_an_incident_is_the_same_after_a_restart(engine_in, tmp_path):
    engine = engine_in(tmp_path)
    rows = rows_of(FAULTS)
    engine.ingest(rows[:1000])
    engine.store.close()  # killed
    again = engine_in(tmp_path)
    again.ingest(rows[1000:])
    whole = engine_in(tmp_path / "whole")
    whole.ingest(rows)
    query = "SELECT id, incident FROM alarms ORDER BY id"
    assert again.store.read(query) == whole.store.read(query)


def test_severity_is_how_far_beyond_the_threshold_and_is_sent(filled):
    assert [severity_of(ratio) for ratio in (0.0, 1.0, 1.99, 2.0, 4.99, 5.0, 100.0)] == ["minor"] * 3 + ["major"] * 2 + ["critical"] * 2  # fmt: skip
    for alarm in filled.view.alarms():
        assert alarm.severity == severity_of(alarm.ratio, alarm.sort)
        assert message_of(filled.view, alarm.id, "raised", "").severity == alarm.severity


def test_an_alert_that_grows_worse_is_another_alert_and_the_milder_one_is_over(engine_in, tmp_path, monkeypatch):
    with Receiver() as receiver:
        sink = Alertmanager("am", receiver.url)
        service = Service(engine_in(tmp_path))
        sink._service = service
        service.engine.ingest(rows_of({"p": 300}, count=305))
        (alarm,) = service.view.alarms(active=True)
        told = []
        for severity in ("minor", "minor", "major"):
            now = [msgspec.structs.replace(alarm, severity=severity)]
            monkeypatch.setattr(service.view, "alarms", lambda *, active, now=now, **_: now if active else [])
            sink.send_alerts()
            alerts = json.loads(receiver.requests[-1][2])
            told.append([(one["labels"]["severity"], one["labels"]["incident"]) for one in alerts])
        assert told == [
            [("minor", alarm.id)],
            [("minor", alarm.id)],
            [("major", alarm.id), ("minor", alarm.id)],
        ]
        worse, milder = (one["endsAt"] for one in alerts)
        assert milder < worse, "the milder one is told resolved"


# ---------------------------------------------------------------------- life cycle


@pytest.fixture
def broken(steps_watch, tmp_path):  # noqa: F811
    """A step that stays: the alarm is ongoing."""
    values = plant(800, 2)
    values[300:, 1] += 2.0
    with Store(tmp_path) as store:
        engine = Engine(store, [Group("main", steps_watch)], clock=lambda: float(START), routes=("hook",))
        engine.ingest([Row("pump", one.tolist(), START + 60 * k) for k, one in enumerate(values)])
        yield Service(engine)


def test_an_alarm_is_ongoing_until_somebody_accepts_it(broken):
    view, people = broken.view, broken.feedback
    (alarm,) = [one for one in view.alarms(active=True) if one.state == "ongoing"]
    assert alarm.ongoing_since > alarm.raised
    assert view.entity("pump").status == "alarm"
    client = local_client(make_app(broken, Tokens(broken.engine.store), more=routes(broken)))
    for page in ("/", "/alarms", f"/alarm/{alarm.id}", "/entity/pump"):
        assert "ongoing since" in client.get(page).text
    assert "calm" not in client.get("/").text.partition("<h1")[2].partition("</h1>")[0]
    answer = client.post(f"/api/v1/alarms/{alarm.id}/accept", json={"author": "eva", "reason": "new bearing"})
    assert (answer.status_code, answer.json()["state"]) == (200, "new normal")
    assert answer.json()["cleared"] is not None
    assert view.alarm(alarm.id).alarm.label == "unmarked", "it says nothing of whether the alarm was true"
    assert view.entity("pump").status == "ok"
    assert view.journal()[0]["what"] == f"accept {alarm.id}"
    events = broken.engine.store.read("SELECT event FROM outbox WHERE alarm = ? ORDER BY id", (alarm.id,))
    assert events[0] == ("raised",)
    assert events[-1] == ("cleared",)
    with pytest.raises(ConflictError):
        people.accept(alarm.id, author="eva")
    assert client.post("/api/v1/alarms/none/accept", json={"author": "eva"}).status_code == 404


def test_an_alarm_accepted_while_it_is_on_says_so_until_it_ends(steps_watch, tmp_path):  # noqa: F811
    values = plant(800, 2)
    values[300:, 1] += 2.0
    rows = [Row("pump", one.tolist(), START + 60 * k) for k, one in enumerate(values)]
    with Store(tmp_path) as store:
        service = Service(Engine(store, [Group("main", steps_watch)], clock=lambda: float(START)))
        done = 301
        service.engine.ingest(rows[:done])
        while not service.view.alarms(active=True):
            service.engine.ingest(rows[done : done + 1])
            done += 1
        (alarm,) = service.view.alarms(active=True)
        client = local_client(make_app(service, Tokens(store), more=routes(service)))
        said = client.post(f"/api/v1/alarms/{alarm.id}/accept", json={"author": "eva"}).json()
        assert (said["state"], said["accepted"]) == ("raised", "eva")
        page = client.get(f"/alarm/{alarm.id}").text
        assert "eva accepted it. It stays on until its statistic falls" in page
        assert "/accept" not in page
        service.engine.ingest(rows[done:])
        over = service.view.alarm(alarm.id).alarm
        assert (over.state, over.accepted) == ("new normal", "eva")


def test_accepting_is_kept_over_a_kill(broken, steps_watch):  # noqa: F811
    (alarm,) = [one for one in broken.view.alarms(active=True) if one.state == "ongoing"]
    accepted = broken.feedback.accept(alarm.id, author="eva")
    assert (accepted.state, accepted.accepted) == ("new normal", "eva")
    folder = broken.engine.store.folder
    broken.engine.store.close()
    with Store(folder) as store:
        engine = Engine(store, [Group("main", steps_watch)], clock=lambda: float(START))
        assert FleetView(engine).alarm(alarm.id).alarm.state == "new normal"
        assert FleetView(engine).entity("pump").status == "ok"


def test_after_a_restart_an_entity_with_an_ongoing_alarm_is_not_calm(broken, steps_watch):  # noqa: F811
    folder = broken.engine.store.folder
    broken.engine.close()
    broken.engine.store.close()
    with Store(folder) as store:
        engine = Engine(store, [Group("main", steps_watch)], clock=lambda: float(START))
        assert FleetView(engine).entity("pump").status == "alarm"
        assert FleetView(engine).counts() == {"alarm": 1}


# ---------------------------------------------------------------------- a free range


def test_a_page_shows_any_stretch_by_the_readers_clock(filled, client):
    import datetime
    import re

    def clock(seconds):
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M")

    begin, end = START + 60 * 290, START + 60 * 330
    first, second = (f"from={clock(begin + 60 * zone)}&to={clock(end + 60 * zone)}&zone={zone}" for zone in (0, 120))
    for query in (first, second):
        found = client.get(f"/alarms?show=each&{query}").text
        shown = set(re.findall(r'href="/alarm/(\w+)"', found))
        assert shown == {one.id for one in filled.view.alarms(start=begin // 60 * 60, stop=end // 60 * 60)}
        assert shown
        assert f'value="{clock(begin)}"' in found, "the form says what is shown"
        assert f"start={begin // 60 * 60}" in found, "so does the csv"
    for page in ("/", "/entity/a", "/budget", "/whatif", "/alarms?show=incidents"):
        assert client.get(f"{page}{'&' if '?' in page else '?'}{first}").status_code == 200
        assert 'name="from"' in client.get(page).text
    for wrong in (f"from={clock(end)}&to={clock(begin)}", "from=x&to=y"):
        assert client.get(f"/?{wrong}").status_code == 400


# ---------------------------------------------------------------------- proposals of thresholds


def test_a_threshold_that_avoids_nothing_is_not_proposed_by_itself(filled, monkeypatch):
    from dataclasses import replace

    people, view = filled.feedback, filled.view
    made, group, number = people._make_proposal("a", "", None)
    useless = replace(made, avoided=0)
    lower = replace(made, avoided=1, after=replace(made.after, threshold=0.9 * made.before.threshold))
    good = replace(made, avoided=1, after=replace(made.after, threshold=1.1 * made.before.threshold))
    monkeypatch.setattr("tisat_serve.feedback.operator.ENOUGH_FALSE", 1)
    alarm = view.alarms(entity="a", sort="statistic")[0]
    for proposal, offered in ((useless, 0), (lower, 0), (good, 1)):
        monkeypatch.setattr(people, "_make_proposal", lambda *_, proposal=proposal: (proposal, group, number))
        people.label(alarm.id, "false", author="eva")
        assert len([one for one in view.proposals(state="open") if one.kind == "threshold"]) == offered
    monkeypatch.setattr(people, "_make_proposal", lambda *_: (lower, group, number))
    asked = people.propose(entity="a", author="eva", reason="too many")
    assert asked.sentences[0] == "A lower threshold is more sensitive: there would be more alarms, not fewer."


def test_an_onset_hours_before_the_raise_joins_no_earlier_incident(filled):
    """A deploy at row 100, and a shared fault at row 122 that two entities have an early onset for."""
    minute, base = 60 * 10**9, START * 10**9
    store, policy = filled.engine.store, filled.engine.policy
    raised = {"deploy": (100, 98), "a": (122, 120), "b": (124, 97), "c": (126, 100)}
    with store.writing() as write:
        write.execute("DELETE FROM alarms")
        for name, (at, onset) in raised.items():
            event = Event(
                0,
                "raised",
                name,
                name,
                "main",
                "statistic",
                base + at * minute,
                base + onset * minute,
                2.0,
                {"known": ""},
            )
            write_event(write, event, policy, (), 0.0, reach=TOGETHER * minute)
    assert dict(store.read("SELECT entity, incident FROM alarms")) == {"deploy": "deploy", "a": "a", "b": "a", "c": "a"}


def test_a_message_about_several_alarms_is_as_severe_as_the_worst(filled):
    """It had the severity of the first."""
    _, early = of_faults(filled.view)
    ids = sorted((one.id for one in early.alarms), key=lambda number: filled.view.alarm(number).alarm.ratio)
    message = message_of_all(filled.view, ids, "raised", "http://here")
    worst = filled.view.alarm(ids[-1]).alarm
    assert (message.ratio, message.severity) == (worst.ratio, worst.severity)
    assert [one["severity"] for one in message.alarms] == [filled.view.alarm(number).alarm.severity for number in ids]


def test_those_raised_at_one_row_moved_together(filled):
    _, early = of_faults(filled.view)
    alarms = [msgspec.structs.replace(one, raised=early.raised) for one in early.alarms]
    assert _incident(early.id, alarms).words == "a (temp) and b moved together"
