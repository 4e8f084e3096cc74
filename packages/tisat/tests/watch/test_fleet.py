"""Many entities at once: the results of single monitors, whoever comes, goes, or sends garbage."""

import dataclasses

import numpy as np
import pytest

from tisat.detectors import make
from tisat.errors import ArtefactError, InputError
from tisat.watch import Fleet, Watch
from waves import assert_same_verdicts, quietly, troubled, wave


def test_a_fleet_gives_the_verdicts_of_single_monitors(detector, tmp_path):
    names = ["a", "b", "c"]
    series = {name: troubled() for name in names}
    rows = {name: series[name].values + 0.05 * number for number, name in enumerate(names)}
    watch = quietly(Watch(detector, budget="1/100 rows").calibrate)
    fleet = watch.fleet(names)
    singles = {name: watch.monitor(name=name) for name in names}
    for t in range(400):
        due = [name for number, name in enumerate(names) if t % (number + 1) == 0]  # not all at once
        if t == 200:
            fleet.snapshot(tmp_path / "fleet")
            fleet = Fleet.load(watch, tmp_path / "fleet")
        found = fleet.update({name: rows[name][t] for name in due}, times=60.0 * t)
        assert list(found) == due
        for name in due:
            expected = singles[name].update(rows[name][t], time=60.0 * t)
            one = found[name]
            assert (one.row, one.status, one.active, one.raised) == (
                expected.row,
                expected.status,
                expected.active,
                expected.raised,
            )
            np.testing.assert_allclose(
                [one.score, one.statistic], [expected.score, expected.statistic], rtol=1e-6, atol=1e-9
            )


@pytest.fixture
def watch():
    return quietly(Watch(make("linear-mean", window=4), budget=0.05, period=60.0).fit, wave(400, seed=1))


def test_a_bad_row_or_time_is_that_rows_outcome_and_touches_nobody_else(watch):
    fleet, alone = watch.fleet(["a", "b"]), watch.monitor(name="a")
    rows = wave(40, seed=4)
    bad = [([0.0], 0.0), (rows[0], "garbage"), (["x"] * 3, None), ({"9": 1.0}, None), ([np.inf, 0.0, 0.0], None)]
    for t, row in enumerate(rows):
        wrong, when = bad[t % len(bad)]
        found = fleet.update({"b": wrong, "a": row}, times={"a": 60.0 * t, "b": when})
        assert found["b"].status == "refused"
        assert found["b"].reason
        judged = dataclasses.replace(found["a"], silences=())  # that b says nothing one can read is said there
        assert repr(judged) == repr(alone.update(row, time=60.0 * t))
    assert fleet.silent == ("b",)
    assert fleet["b"].rows == 0
    assert fleet["b"].tally.refused == 40


def test_many_rows_in_one_call_are_the_rows_one_by_one(watch):
    rows = wave(300, seed=4)
    rows[100:103] += 4.0
    one, many = watch.monitor(name="m"), watch.fleet(["m", "other"])
    expected = [one.update(row, time=60.0 * t) for t, row in enumerate(rows)]
    items = [(name, row, 60.0 * t) for t, row in enumerate(rows) for name in ("m", "other")]
    found = [verdict for verdict in many.judge(items) if verdict.entity == "m"]
    assert_same_verdicts(found, expected)
    assert_same_verdicts(watch.monitor(name="m").extend(rows, (60.0 * np.arange(300)).tolist()), expected)
    assert any(verdict.raised for verdict in expected)
    with pytest.raises(InputError, match=r"'rows' and 'times' arguments of Monitor.extend must have the same length"):
        one.extend(rows[:2], [0.0])


def test_entities_enrol_and_retire_and_go_on_from_their_own_state(watch):
    rows = wave(60, seed=4)
    through = watch.fleet(["a"])
    expected = [through.update({"a": row})["a"] for row in rows]
    fleet = watch.fleet(enrol=True)
    found = [fleet.update({"a": row})["a"] for row in rows[:30]]
    blob = fleet.retire("a")
    assert len(fleet) == 0
    assert fleet.judge([("b", rows[0], None)])[0].status == "warming up"
    fleet.retire("b")  # else it would be said to be silent
    fleet.enrol("a", blob)
    found += [fleet.update({"a": row})["a"] for row in rows[30:]]
    assert_same_verdicts(found, expected)
    with pytest.raises(ArtefactError, match="must be its own"):
        fleet.enrol("c", blob)
    with pytest.raises(InputError, match="distinct names"):
        fleet.enrol("a")


def test_an_unknown_entity_is_refused_unless_entities_enrol(watch):
    fleet = watch.fleet(["a"])
    assert (
        fleet.update({"c": [0.0, 0.0, 0.0]})["c"].reason
        == "The fleet must know the entity of every row. Got 'c' instead."
    )
    with pytest.raises(InputError, match="distinct names"):
        watch.fleet(["a", "a"])
