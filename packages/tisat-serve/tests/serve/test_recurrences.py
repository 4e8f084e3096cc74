"""Alarms that recur are one line, and patterns that people know call nobody until more becomes of them."""

import numpy as np
import pytest

from serve.conftest import START, local_client, plant_rows
from serve.test_ongoing_alarm import plant
from serve.test_ongoing_alarm import watch as steps_watch  # noqa: F401 - a fixture
from tisat.watch import Watch
from tisat_serve.api.app import make_app
from tisat_serve.console import routes
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.group import Group
from tisat_serve.feedback.operator import OperatorFeedback
from tisat_serve.security import Tokens
from tisat_serve.service import Service
from tisat_serve.store import Store
from tisat_serve.structs import Row
from tisat_serve.views.fleet_view import FleetView


def nights(count, first=2, channel=0):
    """Days of 240 rows at six minutes, with a fault each night at about 02:00."""
    rows = plant_rows(240 * count, seed=4)
    for day in range(first, count):
        rows[240 * day + 20 : 240 * day + 30, channel] += 8.0
    return rows


MIDNIGHT = 1_769_817_600  # Saturday 31 January 2026, 00:00


@pytest.fixture
def nightly(engine_in, tmp_path):
    engine = engine_in(tmp_path, routes=("hook",))
    values = nights(7)
    rows = [Row("press", one.tolist(), MIDNIGHT + 360 * k) for k, one in enumerate(values)]
    service = Service(engine)
    service.rows = rows
    engine.ingest(rows[: 240 * 5])
    engine.settle()
    return service


def at_night(view):
    return [
        one for one in view.alarms(entity="press", sort="statistic") if (one.raised - MIDNIGHT) % 86400 // 3600 == 2
    ]


def test_alarms_that_recur_are_one_line(nightly):
    found = nightly.view.recurrences(entity="press")
    again = next(one for one in found if one.last.id == at_night(nightly.view)[0].id)
    assert again.count == 3
    assert again.words.startswith("3rd time, nightly at 02:")
    assert again.words.endswith("since 2 February")
    page = nightly.view.alarm(again.last.id)
    assert page.recurrence == again.words
    client = local_client(make_app(nightly, Tokens(nightly.engine.store), more=routes(nightly)))
    assert again.words in client.get("/alarms").text
    assert again.words in client.get(f"/alarm/{again.last.id}").text
    assert client.get("/api/v1/recurrences?entity=press").json()[0]["count"] >= 1
    assert client.get("/alarms").text.count('href="/alarm/') < client.get("/alarms?show=each").text.count(
        'href="/alarm/'
    )


def test_labels_propose_a_pattern_and_what_it_knows_calls_nobody(nightly):
    view, people, engine = nightly.view, nightly.feedback, nightly.engine
    for alarm in at_night(view):
        people.label(alarm.id, "expected", author="eva")
    proposals = [one for one in view.proposals() if one.kind == "pattern"]
    (open_one,) = [one for one in proposals if one.state == "open"]
    assert open_one.document["avoided"] == 3
    assert not open_one.loses_true
    assert view.patterns() == [], "nothing changes by a proposal"
    taken = people.decide(open_one.id, take=True, author="eva", reason="the nightly wash")
    assert taken.state == "taken"
    (pattern,) = view.patterns()
    assert "temp up" in pattern.words
    before = view.ledger().fleet.raised
    engine.ingest(nightly.rows[240 * 5 : 240 * 6])
    engine.settle()
    latest = at_night(view)[0]
    assert latest.known == pattern.words
    assert latest.suppressed == f"known: {pattern.words}"
    assert view.ledger().fleet.raised > before, "a known alarm is counted"
    assert not engine.store.read("SELECT 1 FROM outbox WHERE alarm = ?", (latest.id,)), "and nobody is called"
    assert view.patterns()[0].known == 1
    client = local_client(make_app(nightly, Tokens(engine.store), more=routes(nightly)))
    assert "known" in client.get("/alarms?show=each").text
    assert pattern.words in client.get("/care").text
    assert people.revert(open_one.id, author="eva").state == "reverted"
    assert view.patterns() == []
    engine.ingest(nightly.rows[240 * 6 :])
    engine.settle()
    assert at_night(view)[0].known == ""
    assert engine.store.read("SELECT 1 FROM outbox WHERE alarm = ?", (at_night(view)[0].id,))


def test_a_pattern_that_would_hide_a_true_alarm_says_so_and_labels_taken_back_withdraw_it(nightly):
    view, people = nightly.view, nightly.feedback
    first, second, _ = at_night(view)
    people.label(first.id, "false", author="eva")
    people.label(second.id, "true", author="eva")
    (proposal,) = [one for one in view.proposals(state="open") if one.kind == "pattern"]
    assert proposal.loses_true
    people.label(first.id, "unmarked", author="eva")
    assert not [one for one in view.proposals(state="open") if one.kind == "pattern"]


def test_a_known_alarm_of_which_more_becomes_calls_somebody(steps_watch, tmp_path):  # noqa: F811
    with Store(tmp_path) as store:
        engine = Engine(store, [Group("main", steps_watch)], clock=lambda: float(START), routes=("hook",))
        view = FleetView(engine)
        people = OperatorFeedback(engine, view)
        values = plant(2600, 2)
        values[300:320, 1] += 2.0
        values[1500:, 1] += 2.0  # as it began before, but it stays
        rows = [Row("pump", one.tolist(), START + 60 * k) for k, one in enumerate(values)]
        engine.ingest(rows[:1400])
        first = [one for one in view.alarms(sort="statistic") if abs(one.raised - START - 60 * 300) < 3600][-1]
        people.label(first.id, "expected", author="eva")
        (proposal,) = [one for one in view.proposals(state="open") if one.kind == "pattern"]
        people.decide(proposal.id, take=True, author="eva")
        told = []
        for k in range(1400, 2600, 10):
            engine.ingest(rows[k : k + 10])
            on = [one for one in view.alarms(active=True) if one.raised >= START + 60 * 1490]
            told += [(one.state, bool(one.known), bool(one.suppressed)) for one in on[-1:]]
        assert ("raised", True, True) in told, "at first it looks like the one that is known"
        assert told[-1] == ("ongoing", False, False), "it is ongoing: that is not what people saw"
        ongoing = [one for one in view.alarms(active=True) if one.state == "ongoing"][-1]
        assert store.read("SELECT event FROM outbox WHERE alarm = ?", (ongoing.id,)) == [("raised",)]


def test_a_known_alarm_that_grows_beyond_the_labelled_one_calls_somebody_once(tmp_path):
    rng = np.random.default_rng(0)
    watch = Watch("mahalanobis", budget="1/500 rows", period="1 min", control=False).fit(rng.normal(size=(6000, 2)))
    values = rng.normal(size=(1200, 2))
    values[300, 0] += 6.0
    values[range(800, 1100, 40), 0] += 6.0  # as it began before, but it does not end
    values[800:1140, 1] *= 0.2  # so that no channel joins
    rows = [Row("pump", one.tolist(), START + 60 * k) for k, one in enumerate(values)]

    def start(store):
        return Engine(store, [Group("main", watch)], clock=lambda: float(START), routes=("hook",))

    def latest(engine):
        engine.settle()
        first = START + 60 * 790
        found = [one for one in FleetView(engine).alarms(sort="statistic") if first <= one.raised < first + 60 * 30]
        sent = "SELECT event FROM outbox WHERE alarm = ?"
        return bool(found[0].known), bool(found[0].suppressed), engine.store.read(sent, (found[0].id,))

    with Store(tmp_path) as store:
        engine = start(store)
        engine.ingest(rows[:780])
        view = FleetView(engine)
        people = OperatorFeedback(engine, view)
        first = next(one for one in view.alarms(sort="statistic") if abs(one.raised - START - 60 * 300) < 600)
        people.label(first.id, "expected", author="eva")
        (proposal,) = [one for one in view.proposals(state="open") if one.kind == "pattern"]
        people.decide(proposal.id, take=True, author="eva")
        engine.ingest(rows[780:880])
        assert latest(engine) == (True, True, [])
    with Store(tmp_path) as store:  # it ends without saving what it knows: rows are scored again
        engine = start(store)
        assert latest(engine) == (True, True, [])
        engine.ingest(rows[880:1090])
        assert latest(engine) == (False, False, [("raised",)])
    with Store(tmp_path) as store:
        engine = start(store)
        engine.ingest(rows[1090:])
        assert latest(engine)[2][0] == ("raised",)
        assert latest(engine)[2].count(("raised",)) == 1
