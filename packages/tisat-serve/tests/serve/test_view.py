"""What can be asked: exact figures, from what was stored."""

import numpy as np
import pytest

from serve.conftest import START, requests_of
from tisat.errors import InputError
from tisat_serve.engine.row_encoding import pack_brief, unpack_brief
from tisat_serve.feedback.operator import OperatorFeedback
from tisat_serve.folder.archive import briefs_of
from tisat_serve.views.fleet_view import FleetView


@pytest.fixture
def desk(engine_in, tmp_path):
    engine = engine_in(tmp_path)
    for rows in requests_of():
        engine.ingest(rows)
    view = FleetView(engine)
    return engine, view, OperatorFeedback(engine, view)


def test_entities_and_history_show_what_was_judged(desk):
    engine, view, _ = desk
    assert [one.name for one in view.entities()]
    assert view.entity("e1").rows == 200
    history = view.history("e1", start=START, stop=START + 200 * 60, points=200)
    assert len(history.times) == 200
    assert history.channels[0].name == "temp"
    from tisat_serve.folder.archive import rows_of

    brief, body = rows_of(engine.entities, "e1")
    assert history.channels[0].values == body.values[:, 0].tolist()
    known = ~np.isnan(brief.statistic)
    assert [s for s in history.statistic if s is not None] == brief.statistic[known].tolist()
    assert "alarm" in history.status
    assert history.alarms
    expected = [e for e in history.channels[0].expected if e is not None]
    assert len(expected) == 190
    assert abs(np.median(expected) - 60) < 1
    coarse = view.history("e1", start=START, stop=START + 200 * 60, points=10)
    assert len(coarse.times) == 10
    assert max(r for r in coarse.ratio if r is not None) == max(r for r in history.ratio if r is not None)


def test_the_heat_map_is_the_largest_ratio_of_each_cell(desk):
    _, view, _ = desk
    heat = view.heat_map(start=START, stop=START + 200 * 60, steps=20)
    assert heat.entities == ["e0", "e1", "e2", "e3"]
    for k, name in enumerate(heat.entities):
        fine = view.history(name, start=START, stop=START + 200 * 60, points=200)
        for s in range(20):
            inside = [
                r
                for t, r in zip(fine.times, fine.ratio, strict=True)
                if START + 600 * s <= t < START + 600 * (s + 1) and r is not None
            ]
            assert heat.ratio[k][s] == (round(max(inside), 4) if inside else None)
    assert "a" in heat.state[1]
    assert heat.state[0].startswith("w")
    assert set(heat.state[0]) <= set("wca")


def test_what_if_at_the_threshold_in_force_is_what_happened(desk):
    _, view, _ = desk
    now = view.calibrated("e1")
    same = view.what_if(group="main", threshold=now)
    book = view.alarms(sort="statistic")
    assert same.exact
    assert same.before == len(book) == len(same.alarms)
    assert not same.avoided
    assert {(one.entity, one.raised, one.cleared) for one in same.alarms} == {
        (one.entity, one.raised, one.cleared) for one in book
    }
    assert all(one.delay == 0 for one in same.alarms)
    never = view.what_if(entity="e1", threshold=1e9)
    assert not never.alarms
    assert len(never.avoided) == len(view.alarms(entity="e1", sort="statistic"))
    rarer = view.what_if(entity="e1", budget="1/100000 rows")
    assert rarer.threshold > now
    with pytest.raises(InputError, match="Got both"):
        view.what_if(entity="e1", budget="1/day", threshold=3.0)
    with pytest.raises(InputError, match="must know the entity"):
        view.what_if(entity="nobody", threshold=3.0)


def test_the_ledger_adds_up(desk):
    _, view, people = desk
    alarms = view.alarms(sort="statistic")
    people.label(alarms[0].id, "true", author="ann", reason="saw it")
    ledger = view.ledger()
    assert ledger.fleet.raised == len(alarms)
    assert ledger.fleet.true == 1
    assert ledger.fleet.unmarked == len(alarms) - 1
    assert ledger.fleet.rows == sum(line.rows for line in ledger.entities) == 4 * 190
    assert ledger.fleet.allowed == pytest.approx(4 * 190 / 1000)
    part = view.ledger(start=START + 60 * 50, stop=START + 60 * 100)
    assert part.fleet.rows == 4 * 50
    low, high = ledger.fleet.raised_low, ledger.fleet.raised_high
    assert low < len(alarms) < high
    assert ledger.budgets[0].asked == 1000
    assert ledger.budgets[0].supported > 0


def test_labels_make_a_proposal_that_can_be_taken_and_taken_back(desk, engine_in, tmp_path):
    engine, view, people = desk
    alarm = view.alarms(entity="e1", sort="statistic")[-1]
    before, other = view.entity("e1").threshold, view.entity("e0").threshold
    people.label(alarm.id, "false", author="ann")
    assert view.alarm(alarm.id).labels[0].word == "false"
    assert view.alarm(alarm.id).alarm.label == "false"
    proposal = people.propose(entity="e1", author="ann", reason="too loud")
    assert proposal.state == "open"
    calibrated = view.calibrated("e1")
    assert proposal.threshold_after > calibrated
    assert view.entity("e1").threshold == before
    assert any("of 1" in line for line in proposal.sentences)
    people.decide(proposal.id, take=True, author="bob")
    assert view.calibrated("e1") == proposal.threshold_after
    assert view.entity("e1").threshold > before
    assert view.entity("e0").threshold == other
    engine.store.close()  # killed
    again = engine_in(tmp_path)
    assert FleetView(again).calibrated("e1") == proposal.threshold_after
    people = OperatorFeedback(again, FleetView(again))
    people.revert(proposal.id, author="bob")
    assert (FleetView(again).calibrated("e1"), FleetView(again).entity("e1").threshold) == (calibrated, before)
    assert [line["author"] for line in FleetView(again).journal()][:2] == ["bob", "bob"]
    group = people.propose(group="main", author="ann", budget="1/5000 rows")
    people.decide(group.id, take=True, author="ann")
    assert {FleetView(again).calibrated(one.name) for one in FleetView(again).entities()} == {group.threshold_after}
    with pytest.raises(InputError, match="must be open"):
        people.decide(group.id, take=True, author="ann")


def test_maintenance_and_rules_hold_messages_back_but_not_alarms(engine_in, tmp_path):
    for pattern, make in (
        ("pause", lambda p: p.pause("e*", START, START + 90000, author="ann", reason="pump change")),
        ("rule", lambda p: p.rule("e1", "*:up", author="ann")),
        ("rule", lambda p: p.rule("e1", "*:100", author="ann")),
    ):
        engine = engine_in(tmp_path / f"{pattern}{len(list(tmp_path.iterdir()))}", routes=("hook",))
        view = FleetView(engine)
        make(OperatorFeedback(engine, view))
        for rows in requests_of():
            engine.ingest(rows)
        alarms = view.alarms(entity="e1", sort="statistic")
        assert alarms
        assert all(one.suppressed for one in alarms)
        told = {row[0] for row in engine.store.read("SELECT alarm FROM outbox")}
        assert not told & {one.id for one in alarms}
        assert view.ledger().fleet.suppressed >= len(alarms)
    loud = engine_in(tmp_path / "loud", routes=("hook",))
    for rows in requests_of():
        loud.ingest(rows)
    assert loud.store.read(
        "SELECT event FROM outbox WHERE alarm IN (SELECT id FROM alarms WHERE entity = 'e1') ORDER BY id"
    )[0] == ("raised",)


@pytest.mark.parametrize("call", [
    lambda p: p.label("nothing", "true", author="a"),
    lambda p: p.pause("*", 10, 5, author="a"),
    lambda p: p.rule("*", "*", author="a"),
    lambda p: p.rule("*", "flow:sideways", author="a"),
    lambda p: p.end("pauses", 99, author="a"),
    lambda p: p.propose(entity="nobody", author="a"),
    lambda p: p.decide(99, take=True, author="a"),
])  # fmt: skip
def test_what_cannot_be_is_a_sentence(desk, call):
    with pytest.raises(InputError, match=r"must .*\.$|Got none|No alarm has the id 'nothing'\.$"):
        call(desk[2])


def test_what_is_not_to_be_learned_enters_no_proposal(desk):
    _, view, people = desk
    alarm = view.alarms(entity="e1", sort="statistic")[-1]
    people.label(alarm.id, "false", author="ann")
    whole = people.propose(entity="e1", author="ann")
    assert (whole.document["false_alarms"], whole.document["seen"]) == (1, 190)
    people.pause("e1", alarm.raised - 600, alarm.raised + 600, author="ann", silent=False, unlearned=True)
    without = people.propose(entity="e1", author="ann")
    assert (without.document["false_alarms"], without.document["seen"]) == (0, 170)
    people.pause("e2", alarm.raised - 600, alarm.raised + 600, author="ann", unlearned=False)
    assert people.propose(entity="e2", author="ann").document["seen"] == 190


def test_thresholds_that_follow_the_alarms_are_kept_row_by_row_and_over_a_restart(desk, engine_in, tmp_path):
    engine, view, _ = desk
    brief = briefs_of(engine.entities, "e1")
    used = brief.threshold[brief.status == 0]
    assert len(used) == 190
    history = view.history("e1", start=START, stop=START + 200 * 60, points=200)
    judged = [k for k, ratio in enumerate(history.ratio) if ratio is not None]
    assert [history.threshold[k] for k in judged] == brief.threshold[judged].tolist()
    assert {history.status[k] == "alarm" for k in judged if history.ratio[k] >= 1} == {True}
    assert {history.status[k] == "alarm" for k in judged if history.ratio[k] < 1} == {False}
    before = {one.name: (one.threshold, one.ratio) for one in view.entities()}
    engine.close()
    engine.store.close()
    again = FleetView(engine_in(tmp_path))
    assert {one.name: (one.threshold, one.ratio) for one in again.entities()} == before
    assert briefs_of(again.engine.entities, "e1").threshold.tolist() == brief.threshold.tolist()
    old = pack_brief(brief)[: 18 * len(brief.times)]
    assert unpack_brief(old, len(brief.times), 2.5).threshold.tolist() == [2.5] * len(brief.times), (
        "of earlier versions"
    )


def test_what_if_says_where_it_leaves_something_out(desk):
    _, view, people = desk
    assert view.what_if(entity="e1", threshold=3.0).exact
    people.label(view.alarms(entity="e1", sort="statistic")[-1].id, "true", author="ann")
    found = view.what_if(entity="e1", threshold=3.0)
    assert not found.exact
    assert "follows the alarms" in found.sentences[-1]


def test_what_if_and_the_ledger_count_the_same_rows_and_duplicates_are_none(engine_in, tmp_path):
    engine = engine_in(tmp_path)
    requests = requests_of(entities=1)
    for rows in [*requests, requests[0]]:  # the first hundred rows come twice
        engine.ingest(rows)
    view = FleetView(engine)
    assert view.entity("e0").rows == 200
    assert view.what_if(group="main", threshold=2.0).rows == view.ledger().fleet.rows == view.entity("e0").judged
