"""The engine: what is answered is kept, and a restart changes nothing, to the bit."""

import json
import time

import numpy as np
import pytest

from serve.conftest import START, limit, plant_rows, requests_of, result_lines
from tisat_serve.api.bodies import rows_of
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.group import Group
from tisat_serve.sinks.message import message_of, message_of_all
from tisat_serve.store import Store, StoreFullError
from tisat_serve.structs import Row
from tisat_serve.views.fleet_view import FleetView


def run(engine, requests):
    return [engine.ingest(rows) for rows in requests]


def test_rows_are_judged_as_a_monitor_would(engine_in, watch, tmp_path):
    outcomes = [one for rows in run(engine_in(tmp_path), requests_of()) for one in rows]
    for name in ("e0", "e1"):
        monitor = watch.monitor(name=name)
        expected = [
            monitor.update(row, START + 60 * k)
            for k, row in enumerate(plant_rows(200, seed=int(name[1]), fault=120 if name == "e1" else None))
        ]
        mine = [one for one in outcomes if one.entity == name]
        assert [one.status for one in mine] == [one.status for one in expected]
        assert [one.statistic for one in mine] == [None if np.isnan(v.statistic) else v.statistic for v in expected]
        assert [one.raised for one in mine] == [one.raised for one in expected]
    assert sum(one.raised for one in outcomes if one.entity == "e1") >= 1


@pytest.mark.parametrize("stop", [1, 4, 7])
def test_a_restart_after_any_request_changes_no_bit(engine_in, tmp_path, stop):
    requests = requests_of()
    whole = engine_in(tmp_path / "whole")
    first = run(whole, requests)
    killed = engine_in(tmp_path / "killed")
    second = run(killed, requests[:stop])
    killed.store.close()  # as if it were killed: nothing is saved on the way out
    again = engine_in(tmp_path / "killed")
    second += run(again, requests[stop:])
    assert first == second
    assert result_lines(whole) == result_lines(again)
    query = "SELECT id, entity, raised, onset, cleared, ratio, document FROM alarms ORDER BY id"
    assert whole.store.read(query) == again.store.read(query) != []


def test_closing_saves_everything_and_the_log_is_cut(engine_in, tmp_path):
    engine = engine_in(tmp_path)
    run(engine, requests_of())
    engine.close()
    engine.cut_log()
    assert engine.store.read("SELECT count(*) FROM log")[0][0] == 1  # the last one says where to go on
    lines = result_lines(engine)
    engine.store.close()
    again = engine_in(tmp_path)
    assert again.replayed == 0
    assert result_lines(again) == lines
    assert again.ingest([Row("e0", [60.0, 5.0, 1.0], START + 200 * 60)])[0].status == "ok"


def test_a_bad_row_is_that_rows_outcome(engine_in, tmp_path):
    engine = engine_in(tmp_path)
    rows = [
        Row("a", [1.0, 2.0, 3.0], START),
        Row("a", [1.0, 2.0], START + 60),
        Row("a", {"temp": 1.0, "nonsense": 2.0}, START + 60),
        Row("a", [1.0, 2.0, 3.0], "yesterday"),
        Row("", [1.0, 2.0, 3.0], START),
        Row("a\nb", [1.0, 2.0, 3.0], START),
        Row("b" * 201, [1.0, 2.0, 3.0], START),
        Row("a", [1.0, 2.0, 3.0], START),
        Row("a", [1.0, 2.0, 3.0], START + 60),
        Row("c", [1.0, 2.0, 3.0], START, "nowhere"),
        Row("a", [1.0, 2.0, 3.0], 17.0),
    ]
    statuses = [one.status for one in engine.ingest(rows)]
    assert statuses == ["warming up", *["refused"] * 6, "duplicate", "warming up", "refused", "refused"]
    assert list(engine.cells) == ["a"]
    assert all(one.reason.endswith(".") for one in engine.ingest(rows[1:7]))


def test_the_reorder_window_puts_late_rows_in_their_place(engine_in, tmp_path):
    order = [0, 1, 3, 2, 4, 6, 5, 7, 8, 9, 10, 11]
    values = plant_rows(12, seed=3)
    plain = engine_in(tmp_path / "plain")
    run(plain, [[Row("a", values[k].tolist(), START + 60 * k)] for k in range(12)])
    late = engine_in(tmp_path / "late", lateness=180.0)
    for k in order:
        assert late.ingest([Row("a", values[k].tolist(), START + 60 * k)])[0].status == "held"
    late.steady = late.clock = lambda: START + 1000.0
    late.run_maintenance()  # nothing has come for long: the rest is judged too
    strip = result_lines(plain)
    assert result_lines(late) == strip
    held = engine_in(tmp_path / "held", lateness=180.0, save_rows=2)
    for k in order[:7]:
        held.ingest([Row("a", values[k].tolist(), START + 60 * k)])
    held.store.close()
    held = engine_in(tmp_path / "held", lateness=180.0, save_rows=2)
    for k in order[7:]:
        held.ingest([Row("a", values[k].tolist(), START + 60 * k)])
    held.steady = held.clock = lambda: START + 1000.0
    held.run_maintenance()
    assert result_lines(held) == strip


def test_a_silent_entity_is_an_alarm_of_its_own_kind(engine_in, tmp_path):
    now = [float(START)]
    engine = engine_in(tmp_path, clock=lambda: now[0], silent_after=120.0)
    engine.ingest([Row("a", [60.0, 5.0, 1.0], START), Row("b", [60.0, 5.0, 1.0], START)])
    now[0] += 100
    engine.ingest([Row("b", [60.0, 5.0, 1.0], START + 60)])
    now[0] += 100
    engine.run_maintenance()
    assert engine.store.read("SELECT entity, sort, cleared FROM alarms") == [("a", "silence", None)]
    engine.run_maintenance()
    engine.ingest([Row("a", [60.0, 5.0, 1.0], START + 60)])
    assert engine.store.read("SELECT entity, sort, cleared IS NULL FROM alarms") == [("a", "silence", 0)]


def test_an_outage_is_not_minor(engine_in, tmp_path):
    """All entities silent went to the quiet channel."""
    now = [float(START)]
    engine = engine_in(tmp_path, clock=lambda: now[0], silent_after=120.0)
    view = FleetView(engine)
    engine.ingest([Row(name, [60.0, 5.0, 1.0], START) for name in "abc"])
    now[0] += 100
    engine.ingest([Row(name, [60.0, 5.0, 1.0], START + 60) for name in "bc"])
    now[0] += 100
    engine.run_maintenance()
    (alone,) = view.incidents()
    assert (alone.severity, alone.alarms[0].severity) == ("major", "major")
    now[0] += 100
    engine.run_maintenance()
    assert {one.severity for one in view.alarms(sort="silence")} == {"major"}
    ids = [one.id for one in view.alarms(sort="silence")]
    assert view.incidents()[0].severity == "critical"
    assert message_of_all(view, ids, "raised", "http://here").severity == "critical"


def test_a_full_disk_refuses_rows_with_a_sentence_and_goes_on(engine_in, tmp_path):
    requests = requests_of(size=40)
    whole = engine_in(tmp_path / "whole")
    run(whole, requests)
    engine = engine_in(tmp_path / "small")
    run(engine, requests[:5])
    (pages,) = engine.store.read("PRAGMA page_count")[0]
    limit(engine.store, pages + 3)  # so that rows, and not the state beside them, meet the limit first
    done = 5
    while not engine.store.full:
        try:
            engine.ingest(requests[done])
            done += 1
        except StoreFullError as error:
            assert "must have room" in str(error)  # noqa: PT017
    assert engine.store.full
    with pytest.raises(StoreFullError):
        engine.ingest(requests[done])
    limit(engine.store, 2**32 - 2)
    run(engine, requests[done:])
    assert not engine.store.full
    assert result_lines(engine) == result_lines(whole)


def test_idle_time_is_used_to_save(engine_in, tmp_path):
    engine = engine_in(tmp_path, save_rows=100)
    for rows in requests_of(count=60):
        engine.ingest(rows)
    assert all(cell.unsaved for cell in engine.cells.values())
    engine.save_while_idle()
    assert not any(cell.unsaved for cell in engine.cells.values())
    engine.store.close()
    assert engine_in(tmp_path).replayed == 0


def test_a_fault_that_joins_an_alarm_is_in_the_book_and_is_told_once(engine_in, tmp_path):
    values = plant_rows(260, seed=3)
    rng = np.random.default_rng(0)
    values[100:200, 0] += 4.0 * rng.normal(size=100)
    values[150:180, 1] += 40.0 * rng.normal(size=30)
    rows = [Row(entity="pump", values=one.tolist(), time=START + 60 * k) for k, one in enumerate(values)]
    books = []
    for name, cuts in (("whole", [260]), ("restarted", [130, 156, 170, 260])):
        start = 0
        for cut in cuts:  # the engine is dropped without a word: what it did not save it reads from its log again
            engine = engine_in(tmp_path / name, routes=("webhook",))
            engine.ingest(rows[start:cut])
            start = cut
            if cut < len(rows):
                engine.store.close()
        engine.settle()
        book = engine.store.records("SELECT document FROM alarms ORDER BY raised", ())
        told = engine.store.records("SELECT event FROM outbox ORDER BY id", ())
        books.append(([json.loads(one["document"])["further"] for one in book], [one["event"] for one in told]))
    assert books[0] == books[1]
    further, told = books[0]
    assert [one["reasons"][0]["channel"] for found in further for one in found] == ["flow"]
    assert told.count("joined") == 1


def test_an_alarm_that_becomes_more_severe_is_told_once_for_each_step(engine_in, tmp_path):
    """A receiver that routes on severity heard of it when the alarm was over."""
    values = plant_rows(260, seed=3)
    values[120:180, 0] += np.linspace(2.0, 400.0, 60)
    rows = [Row(entity="pump", values=one.tolist(), time=START + 60 * k) for k, one in enumerate(values)]
    books = []
    for name, cuts in (("whole", [260]), ("restarted", [124, 128, 140, 260])):
        start = 0
        for cut in cuts:
            engine = engine_in(tmp_path / name, routes=("webhook",))
            engine.ingest(rows[start:cut])
            start = cut
            if cut < len(rows):
                engine.store.close()
        engine.settle()
        view = FleetView(engine)
        sent = engine.store.records("SELECT alarm, event FROM outbox ORDER BY id", ())
        books.append([one["event"] for one in sent])
        worse = next(one["alarm"] for one in sent if one["event"] == "worsened")
        message = message_of(view, worse, "worsened", "http://here")
        assert (message.severity, message.key) == ("critical", f"{worse}:worsened:critical")
        assert "worse than before" in message.title
    assert books[0] == books[1]
    assert 1 <= books[0].count("worsened") <= 2
    assert books[0].count("raised") == 1


def test_a_clock_that_steps_makes_nobody_silent(engine_in, tmp_path):
    wall, steady = [float(START)], [1000.0]
    engine = engine_in(tmp_path, clock=lambda: wall[0], steady=lambda: steady[0], silent_after=60.0)
    engine.ingest(requests_of()[0])
    for step in (300.0, -7200.0, 86400.0):
        wall[0] += step
        steady[0] += 1.0
        engine.run_maintenance()
    assert not FleetView(engine).alarms(sort="silence")
    steady[0] += 61.0
    engine.run_maintenance()
    silent = FleetView(engine).alarms(sort="silence")
    assert {one.entity for one in silent} == {"e0", "e1", "e2", "e3"}
    assert "no row has come for 64 seconds" in silent[0].why


def test_the_time_of_this_machine_is_not_what_silence_is_counted_by(watch, tmp_path):
    with Store(tmp_path) as store:
        assert Engine(store, [Group("main", watch)]).steady is time.monotonic


def test_words_of_the_model_are_missing_values_in_rows(watch, tmp_path):
    """``tisat fit --missing`` holds for rows that come as JSON or csv, too; other text is refused."""
    other = watch.at(watch.calibration)
    other.reading = {**watch.reading, "missing": ["Bad Input"]}
    with Store(tmp_path) as store:
        engine = Engine(store, [Group("main", other)], clock=lambda: float(START))
        body = b'[{"entity": "a", "values": {"temp": "bad input", "flow": 5, "power": 1}, "time": 0}]'
        rows = [*rows_of(body, "application/json", most=9)[0]]
        rows += rows_of(b"entity,time,temp,flow,power\na,60,Bad Input,5,1\na,120,soon,5,1\n", "text/csv", most=9)[0]
        found = engine.ingest(rows)
        engine.close()
    assert [one.status == "refused" for one in found] == [False, False, True]
    assert "must be a number. Got 'soon'" in found[2].reason


def test_each_event_of_an_alarm_is_told_as_it_was_then_though_all_are_sent_at_once(engine_in, tmp_path):
    """Two channels that joined while a sink was away were told twice as joined:2, and joined:1 never."""
    values = plant_rows(260, seed=3)
    rng = np.random.default_rng(0)
    for channel, start in enumerate((100, 130, 160)):
        values[start:200, channel] += 40.0**channel * 4.0 * rng.normal(size=200 - start)
    engine = engine_in(tmp_path, routes=("webhook",))
    engine.ingest([Row(entity="pump", values=one.tolist(), time=START + 60 * k) for k, one in enumerate(values)])
    engine.settle()
    view = FleetView(engine)
    waiting = engine.store.records("SELECT alarm, event, body FROM outbox ORDER BY id", ())
    sent = [message_of(view, one["alarm"], one["event"], "", one["body"]) for one in waiting]
    joined = [one for one in sent if one.event == "joined"]
    assert [one.key.rpartition("joined:")[2] for one in joined] == ["1", "2"]
    assert ("power" in joined[0].why, "power" in joined[1].why) == (False, True)
    assert len({one.key for one in sent}) == len(sent)
    worse = [one for one in sent if one.event == "worsened"]
    assert [one.key for one in worse] == [f"{one.id}:worsened:{one.severity}" for one in worse]
    assert all(one.cleared is not None for one in sent), "and how it ended is said"


def test_an_entity_whose_last_rows_were_late_is_not_without_a_row_after_a_restart(engine_in, tmp_path):
    engine = engine_in(tmp_path)
    for _ in range(2):  # the second time all are late
        for rows in requests_of():
            engine.ingest(rows)
        engine.close()
    before = FleetView(engine).counts()
    engine.store.close()
    assert FleetView(engine_in(tmp_path)).counts() == before
    assert "waiting" not in before
