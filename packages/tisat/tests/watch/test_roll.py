"""An entity whose rows stop while the others go on is an alarm about the data, said once."""

import io
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tisat
from tisat.gap_filling import MAX_GAP, Silence
from tisat.watch import Fleet, Watch
from tisat.watch.fleet_stream import FleetLines
from tisat.watch.liveness import Heard, RollCall
from tisat.watch.text_stream import LineReader, watch_lines


@pytest.fixture(scope="module")
def watch():
    values = np.random.default_rng(0).normal(size=(600, 2))
    series = tisat.Series(values, timestamps=60.0 * np.arange(600), channels=("flow", "heat"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Watch("last-value", budget="1/100 rows").fit(series)


def rows_of(time_steps, names=("a", "b", "c"), without=(), *, timed=True):
    """A row of each entity at each row, but for the pairs in ``without``."""
    rng = np.random.default_rng(1)
    return [
        (name, rng.normal(size=2), 60.0 * t if timed else None)
        for t in time_steps
        for name in names
        if (name, t) not in without
    ]


def said(verdicts):
    return [
        (verdict.entity, one.series, one.since, one.until)
        for verdict in verdicts
        for one in verdict.silences
        if not one.channel
    ]


@pytest.mark.parametrize("timed", [True, False])
def test_a_silent_entity_is_said_once_and_so_is_its_return(watch, timed):
    gone = {("b", t) for t in range(20, 60)}
    fleet = watch.fleet(["a", "b", "c"])
    verdicts = fleet.judge(rows_of(range(80), without=gone, timed=timed))
    found = said(verdicts)
    assert [one[1:] for one in found] == [("b", 20, None), ("b", 20, 20)]
    noticed = next(k for k, verdict in enumerate(verdicts) if verdict.silences)
    assert verdicts[noticed].entity in ("a", "c")
    assert verdicts[noticed].to_json()["data"][0]["kind"] == "data"
    assert verdicts[noticed].to_json()["data"][0]["series"] == "b"
    if timed:
        assert verdicts[noticed].time == 60.0 * (19 + MAX_GAP + 1)
    assert fleet.silent == ()


def test_one_that_never_began_is_silent_too_and_one_that_was_retired_is_not(watch):
    fleet = watch.fleet(["a", "b", "never"])
    assert said(fleet.judge(rows_of(range(30), names=("a", "b")))) == [("a", "never", 0, None)]
    assert fleet.silent == ("never",)
    fleet.retire("b")
    assert said(fleet.judge(rows_of(range(30, 60), names=("a",)))) == []


def test_a_pause_of_all_and_machines_one_after_the_other_are_nobodys_silence(watch):
    fleet = watch.fleet(enrol=True)
    assert said(fleet.judge(rows_of([*range(20), *range(500, 520)]))) == []
    one_by_one = [row for name in ("x", "y", "z") for row in rows_of(range(100), names=(name,))]
    fleet = watch.fleet(enrol=True)
    assert said(fleet.judge(one_by_one)) == []
    wrong_clock = watch.fleet(enrol=True)
    rows = rows_of(range(60))
    rows.insert(30, ("d", np.zeros(2), 1e9))  # one stamp of a new machine, far ahead and never confirmed
    assert [one[1] for one in said(wrong_clock.judge(rows))] == ["d"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 60).map(float))),
        min_size=1,
        max_size=120,
    )
)
@settings(max_examples=75, deadline=None)
def test_the_roll_call_is_its_slow_twin_and_goes_on_from_its_state(events):
    """The twin keeps every row and asks at each who was heard more than MAX_GAP rows ago."""
    roll, found = RollCall(), []
    passed, latest, heard, silent, expected = 0.0, -np.inf, {}, set(), []
    for row, (name, time_step) in enumerate(events):
        found += [(row, one.series, one.until is None) for one in roll.step(Heard(name, time_step, row))]
        saved = RollCall()
        saved.restore(json.loads(json.dumps(roll.state())))
        roll = saved
        if name in silent:
            silent.discard(name)
            expected.append((row, name, False))
        if time_step is not None and time_step > latest:
            passed, latest = passed + min(time_step - latest, 1.0), time_step
        heard[name] = passed
        for other in sorted(set(heard) - silent, key=lambda one: heard[one]):
            if passed - heard[other] > MAX_GAP:
                silent.add(other)
                expected.append((row, other, True))
    assert sorted(found) == sorted(expected)


def test_batches_and_a_restart_change_nothing(watch, tmp_path):
    rows = rows_of(range(60), without={("b", t) for t in range(10, 45)} | {("c", t) for t in range(30, 60)})
    whole = said(watch.fleet(enrol=True).judge(rows))
    assert len(whole) == 3
    fleet, found = watch.fleet(enrol=True), []
    for first in range(0, len(rows), 7):
        found += said(fleet.judge(rows[first : first + 7]))
        fleet.snapshot(tmp_path / "state")
        fleet = Fleet.load(watch, tmp_path / "state")
    assert found == whole
    assert fleet.silent == ("c",)


def test_lines_of_many_machines_name_the_silent_one(watch):
    text = "time,machine,flow,heat\n" + "".join(
        f"{time},{name},{row[0]},{row[1]}\n"
        for name, row, time in rows_of(range(40), without={("b", t) for t in range(15, 30)})
    )
    sentences, output = [], io.BytesIO()
    from tisat.io.files import Reading

    lines = FleetLines(watch)
    reader = LineReader(watch.channels, how=Reading(entity="machine", time="time"))
    watch_lines(
        lines,
        [line.encode() for line in text.splitlines(keepends=True)],
        output,
        reader=reader,
        report=sentences.append,
    )
    gap = "line 78: b: no row came for 16 min, after 840.0 and before 1800.0; the next row is not scored"
    assert sentences == ["b is silent: no row has come since 840.0", gap, "b is back at 1800.0"]
    told = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [one["data"][0]["series"] for one in told if "data" in one] == ["b", "b"]


@pytest.mark.parametrize(("one", "words"), [
    (Silence("flow", 0, 10, since_time=0.0, series="p"), "p: flow is silent since 0.0"),
    (Silence("flow", 0, 10, until=11, until_time=0.0), "flow is back at 0.0"),
    (Silence("", 1, 1, since_time=0.0, series="p"), "p is silent: no row has come since 0.0"),
    (Silence("", 4, 4, series="p"), "p is silent: no row has come since row 3"),
    (Silence("", 0, 0, series="p"), "p is silent since row 0"),
])  # fmt: skip
def test_silence_in_words_knows_the_time_0(one, words):
    assert one.words == words
