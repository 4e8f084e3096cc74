"""Refits: proposals with consequences, never silent, one click back; and windows that nothing is learned from."""

import numpy as np
import pytest

from serve.conftest import START, plant_rows, requests_of, result_lines
from tisat.errors import InputError
from tisat_serve.feedback.operator import OperatorFeedback
from tisat_serve.service import Service
from tisat_serve.structs import Row
from tisat_serve.views.fleet_view import FleetView


def people_of(engine):
    return OperatorFeedback(engine, FleetView(engine))


def more_rows(first, count, *, fault=None, entities=4):
    """Rows of the same entities, from row ``first`` on."""
    made = [plant_rows(first + count, seed=i, fault=fault if i == 1 else None)[first:] for i in range(entities)]
    return [Row(f"e{i}", made[i][k].tolist(), START + 60 * (first + k)) for k in range(count) for i in range(entities)]


@pytest.fixture
def engine(engine_in, tmp_path):
    engine = engine_in(tmp_path / "watch")
    for request in requests_of(count=400):
        engine.ingest(request)
    return engine


def follow(engine):
    count = 0
    while engine.switch_next_entity():
        count += 1
    return count


def test_a_refit_is_a_proposal_and_changes_nothing(engine, engine_in, tmp_path):
    other = engine_in(tmp_path / "other")
    for request in requests_of(count=400):
        other.ingest(request)
    people = people_of(engine)
    alarm = next(one for one in people.view.alarms(entity="e1", sort="statistic"))
    people.label(alarm.id, "true", author="eva")
    made = people.refit(author="eva", reason="spring")
    assert (made.kind, made.state) == ("refit", "open")
    assert any("Fitted on" in line and "4 entities" in line for line in made.sentences)
    assert any("missed 0 of 1 alarms marked true" in line for line in made.sentences)
    assert not made.loses_true
    assert follow(engine) == 0
    for one in (engine, other):
        one.ingest(more_rows(400, 60))
    assert result_lines(engine) == result_lines(other)
    assert next(row["what"] for row in people.view.journal()) == f"proposal {made.id}"


def test_taken_and_taken_back_by_one_call_each(engine):
    people = people_of(engine)
    home = engine.groups["main"]
    first = home.models[0].print
    made = people.refit(author="eva")
    assert people.decide(made.id, take=True, author="eva").state == "taken"
    assert home.model != 0, "new entities get the new model at once"
    assert follow(engine) == 4, "the others follow one by one"
    assert len(home.models[0].fleet) == 0
    outcomes = engine.ingest(more_rows(400, 30))
    assert {outcome.status for outcome in outcomes} == {"ok"}, "nothing warms up again: history was shown"
    assert home.watch.fingerprint() != first
    assert people.view.what_if(group="main", threshold=5.0).rows < 4 * 430, "only what this model judged"
    assert people.revert(made.id, author="eva").state == "reverted"
    assert follow(engine) == 4
    assert (home.model, home.watch.fingerprint()) == (0, first)
    assert {one.status for one in engine.ingest(more_rows(430, 5))} == {"ok"}


@pytest.mark.parametrize("moved", [0, 2, 4])
def test_a_kill_while_entities_follow_changes_no_verdict(engine_in, tmp_path, moved):
    """The model is in the store, the switch of an entity is in the log: both come back as they were."""
    logs = []
    for kill in (False, True):
        folder = tmp_path / f"{kill}"
        engine = engine_in(folder)
        for request in requests_of(count=400):
            engine.ingest(request)
        people = people_of(engine)
        people.decide(people.refit(author="eva").id, take=True, author="eva")
        for _ in range(moved):
            engine.switch_next_entity()
        engine.ingest(more_rows(400, 10))
        if kill:
            engine.store.close()  # without saving anything
            engine = engine_in(folder)
        follow(engine)
        engine.ingest(more_rows(410, 40))
        logs.append(result_lines(engine))
        alarms = [(one.id, one.cleared) for one in FleetView(engine).alarms()]
        logs.append(alarms)
    assert logs[0] == logs[2]
    assert logs[1] == logs[3]


def test_an_alarm_that_is_on_is_handed_over(engine_in, tmp_path):
    engine = engine_in(tmp_path / "watch")
    for request in requests_of(count=130):  # the fault of e1 began at row 120
        engine.ingest(request)
    people = people_of(engine)
    (old,) = people.view.alarms(active=True)
    people.decide(people.refit(author="eva").id, take=True, author="eva")
    follow(engine)
    book = {one.id: one for one in people.view.alarms(entity="e1", sort="statistic")}
    assert book[old.id].cleared is not None
    (new,) = [one for one in book.values() if one.cleared is None]
    assert new.entity == "e1"
    people.label(
        old.id, "true", author="eva"
    )  # a row number of another model: the book takes it, the record is left alone
    assert people.view.alarm(old.id).alarm.label == "true"


def test_what_is_learned_from(engine):
    people = people_of(engine)
    (alarm,) = people.view.alarms(entity="e1", sort="statistic")
    times = (START + 60 * np.arange(400)) * 10**9

    def kept():
        return people.refits._learnable("e1", times)

    inside = (times >= alarm.onset * 1e9 - 1000) & (times < alarm.cleared * 1e9 - 1000)
    assert not kept()[inside].any(), "unmarked: left out"
    assert kept()[~inside].all()
    for word, says in (("true", False), ("expected", False), ("false", True)):
        people.label(alarm.id, word, author="eva")
        assert (kept()[inside] == says).all(), word
    people.label(alarm.id, "new normal", author="eva")
    assert (kept() == (times >= alarm.onset * 1e9 - 1000)).all(), "what was before counts no more"
    people.label(alarm.id, "false", author="eva")
    people.pause("e1", START, START + 600, author="eva", unlearned=True)
    assert not kept()[:10].any()
    assert kept()[10:].all()


def test_the_shadow_judges_what_came_since_and_raises_nothing(engine):
    people = people_of(engine)
    made = people.refit(author="eva")
    assert people.refits.shadow(made.id).sentences == ["No row has come since."]
    before = len(people.view.alarms())
    rows = more_rows(400, 100, fault=430)
    engine.ingest(rows)
    shadow = people.refits.shadow(made.id)
    assert shadow.rows == 400
    assert shadow.both >= 1
    assert "e1" in {one.entity for one in shadow.alarms if one.was}
    raised = [one for one in people.view.alarms() if one.raised >= shadow.since]
    assert len(people.view.alarms()) == before + len(raised), "the book has those of the model in force alone"
    people.decide(made.id, take=False, author="eva")
    assert engine.store.read("SELECT count(*) FROM models") == [(0,)], "what nobody took is not kept"
    with pytest.raises(InputError, match="may still be taken"):
        people.refits.shadow(made.id)
    with pytest.raises(InputError, match="about a threshold"):
        people.refits.shadow(people.propose(entity="e1", author="eva").id)


def test_a_scheduled_refit_only_proposes(engine):
    now = [float(START)]
    engine.clock = lambda: now[0]
    service = Service(engine)
    engine.groups["main"].refit = 7 * 86400.0
    assert service.schedule.propose_due(service) == []
    now[0] += 8 * 86400.0
    (number,) = service.schedule.propose_due(service)
    assert service.view.proposal(number).state == "open"
    assert service.view.proposal(number).author == "tisat"
    now[0] += 8 * 86400.0
    assert service.schedule.propose_due(service) == [], "one waits already"
    assert engine.groups["main"].model == 0


def test_a_store_of_the_first_version_is_taken_along(engine, engine_in, tmp_path):
    import sqlite3

    engine.close()
    engine.store.close()
    path = tmp_path / "watch" / "tisat-serve.db"
    with sqlite3.connect(path) as old:
        old.executescript(
            "DROP TABLE acknowledgements; DROP TABLE patterns; DROP INDEX alarms_incident; ALTER TABLE alarms DROP COLUMN incident; DROP TABLE models; DROP TABLE marks; DROP TABLE owners; ALTER TABLE calibrations DROP COLUMN model; ALTER TABLE history DROP COLUMN model; PRAGMA user_version=1;"
        )
    old.close()
    again = engine_in(tmp_path / "watch")
    assert len(again.cells) == 4
    assert {one.status for one in again.ingest(more_rows(400, 3))} == {"ok"}


# ---------------------------------------------------------------------- do not learn


def test_a_window_that_is_not_learned_from_leaves_the_reference(engine_in, tmp_path):
    """The moving reference after the window is the one before it; the rows are judged all the same, and a kill changes nothing."""

    def reference(engine):
        evidence = engine.groups["main"].fleet_of(engine.cells["e1"].calibration)["e1"]._run.state()["evidence"]
        return np.concatenate([evidence["above"], evidence["past"], evidence["raw"].ravel()])

    logs = []
    for kill in (False, True):
        folder = tmp_path / f"{kill}"
        engine = engine_in(folder, save_rows=1000)
        engine.ingest(more_rows(0, 300))
        before = reference(engine)
        pause = people_of(engine).pause("e1", START + 300 * 60, START + 350 * 60, author="eva", silent=False)
        rows = more_rows(300, 50, fault=310)
        outcomes = engine.ingest(rows)
        assert any(outcome.raised for outcome in outcomes if outcome.entity == "e1"), "still judged"
        assert np.array_equal(reference(engine), before)
        people_of(engine).end("pauses", pause.id, author="eva")  # what a row taught does not change afterwards
        if kill:
            engine.store.close()
            engine = engine_in(folder, save_rows=1000)
            assert engine.replayed == 4 * 350
            assert np.array_equal(reference(engine), before)
        engine.ingest(more_rows(350, 50, fault=310))
        assert not np.array_equal(reference(engine), before)
        logs.append(result_lines(engine))
    assert logs[0] == logs[1]


def test_rows_that_wait_for_their_turn_keep_whether_to_learn(engine_in, tmp_path):
    engine = engine_in(tmp_path / "watch", lateness=600.0)
    people_of(engine).pause("*", START, START + 86400, author="eva", silent=False)
    engine.ingest(more_rows(0, 5))
    engine.saver.save(list(engine.cells.values()))
    engine.store.close()
    again = engine_in(tmp_path / "watch", lateness=600.0)
    assert [row[4] for row in again.cells["e1"].held] == [False] * 5
