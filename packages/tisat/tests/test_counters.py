"""Counters: recognised, and looked at by their growth, over a whole series as row by row."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tisat.cli import main
from tisat.cli.show import describe
from tisat.datasets.profile import look
from tisat.errors import ParameterError
from tisat.io.counters import Growth, counters_of, difference, is_counter, periods, said_of
from tisat.series import Series
from tisat.watch.protocols import fitted_counters
from tisat.watch.watch import Watch

START = np.datetime64("2026-01-01T00:00:00", "ns")


def made(n=2000, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    total = np.floor(np.cumsum(rng.uniform(1.0, 3.0, n)) + offset) % 3000.0
    values = np.column_stack([rng.standard_normal(n), total])
    return Series(values, timestamps=START + np.arange(n) * np.timedelta64(60, "s"), channels=("level", "total"))


def test_what_is_a_counter():
    assert counters_of([made(), made(seed=1)]) == ("total",)
    rng = np.random.default_rng(0)
    for values in (rng.standard_normal(500), np.sin(np.arange(500.0)), np.repeat(np.arange(5.0), 100), np.arange(20.0)):
        assert not is_counter(values)
    slow = np.cumsum(np.abs(rng.standard_normal(500)))
    slow[250:] -= 1.0  # a small step down: no reset, so no counter
    assert not is_counter(np.where(np.arange(500) >= 250, slow, slow))


def test_a_counter_of_parts_begins_again_each_shift():
    rng = np.random.default_rng(0)
    rate = np.repeat(
        rng.choice([0.0, 1.2, 2.4], 60, p=[0.2, 0.4, 0.4]), 160
    )  # a line that stands, and runs at two speeds
    parts = np.concatenate([np.floor(np.cumsum(shift)) for shift in rate.reshape(-1, 480)])
    assert is_counter(parts)
    kept = rng.random(len(parts)) > 0.01
    kept[955:1000] = False  # rows are lost round a reset: it begins again at 80 parts
    assert is_counter(parts[kept])
    tank = np.arange(9600) % 480 + 3.0 * rng.standard_normal(9600)
    steady = 300 + np.cumsum(rng.random(9600) < 0.5) - 4.0 * np.cumsum(rng.random(9600) < 0.005)  # falls from anywhere
    hour, minute = np.arange(9600.0) % 24, np.arange(9600.0) % 60  # rows of an hour, of a minute: clocks, not counters
    assert not any(map(is_counter, (tank, steady, hour, minute)))


@given(st.lists(st.tuples(st.floats(0, 1e6) | st.none(), st.sampled_from([1, 1, 1, 2, 5, 10, 11, 400])), min_size=1))
def test_row_by_row_it_is_the_same(rows):
    values = np.array([[np.nan if value is None else value] for value, _ in rows])
    steps = np.array([step for _, step in rows], dtype=float)
    times = START + (60 * np.cumsum(steps)).astype("timedelta64[s]")
    whole = difference(Series(values, timestamps=times, channels=("total",)), ["total"], period=60.0).values[:, 0]
    growth = Growth(("total",), ("total",))
    one = []
    for i, row in enumerate(values):
        one.append(growth.step(row, steps=1.0 if i == 0 else float(periods(np.array(60.0 * steps[i]), 60.0)))[0])
    np.testing.assert_array_equal(whole, one)


def test_a_watch_remembers_its_counters(tmp_path):
    train, test = made(3000), made(600, seed=5, offset=2000.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch("last-value", budget="1/500 rows").fit(train)
    assert fitted_counters(watch.detector) == ("total",)
    watch.save(tmp_path / "model.tisat")
    again = Watch.load(tmp_path / "model.tisat")
    stuck = np.array(test.values)
    stuck[400:500, 1] = stuck[400, 1]
    test = Series(stuck, timestamps=test.timestamps, channels=test.channels)
    batch = again.alarms(test)
    monitor = again.monitor()
    found = []
    for i, (row, time) in enumerate(zip(stuck, test.timestamps, strict=True)):
        if i == 300:
            monitor = type(monitor).load(again, monitor.to_bytes())
        found.append(monitor.update(row, time=time).statistic)
    np.testing.assert_allclose(np.nan_to_num(found), np.nan_to_num(batch.statistic), rtol=1e-9)
    assert fitted_counters(Watch("last-value", budget="1/500 rows", counters=()).fit(train).detector) == ()
    with pytest.raises(ParameterError, match="must be channels of the series"):
        Watch("last-value", counters=["nonsense"]).fit(train)
    assert fitted_counters(watch.refitted(train).detector) == ("total",)


def counted(resets, *, seed=0, length=4032):
    """Requests of a service that is restarted at random, with a day's rhythm."""
    rng = np.random.default_rng([resets, seed])
    grown = rng.poisson(5000 * (1.2 + np.sin(np.arange(length) * 2 * np.pi / 288))).astype(float)
    total, edges = 2e7 + np.cumsum(grown), np.sort(rng.choice(np.arange(1, length), resets, replace=False))
    for begin, stop in pairwise([*edges, length]):
        total[begin:stop] = np.cumsum(grown[begin:stop])
    return total


@pytest.mark.parametrize("resets", range(12))
def test_a_counter_is_one_whatever_the_number_of_its_resets(resets):
    for seed in range(5):
        values = counted(resets, seed=seed)
        assert is_counter(values)
        assert look(values[:, None]).channels[0].kind == "counter"


def test_look_calls_counter_only_what_fit_takes_for_one():
    rng = np.random.default_rng(0)
    corrected = 300 + np.cumsum(rng.uniform(0.5, 1.5, 3000))
    corrected[1500:] -= 40.0  # a correction, far from where it began
    for values in (corrected, np.repeat(np.arange(60.0), 60)):
        found = look(values[:, None]).channels[0]
        assert not is_counter(values)
        assert found.kind == "measurement"
        assert "--counter" in found.advice


def pooled(*columns):
    return [Series(np.column_stack([column]), channels=("total",), name=f"m{i}") for i, column in enumerate(columns)]


def test_one_machine_does_not_switch_a_counter_off_for_all():
    idle, odd = np.full(4032, 7.0), counted(0)
    odd[2000:] -= 4e6
    assert counters_of(pooled(counted(0), counted(2), idle)) == ("total",)
    assert counters_of(pooled(counted(0), counted(2), odd)) == ("total",)
    assert counters_of(pooled(counted(0), idle, odd)) == ()
    assert counters_of(pooled(counted(0), counted(2), np.random.default_rng(0).normal(size=4032))) == ()
    said = said_of(["total"], pooled(counted(0), counted(2), idle))
    assert said.endswith("total does not show it in 1 of 3 series. If it is none: --no-counter total")


def test_show_says_which_channels_are_counters(tmp_path, capsys):
    names = [f"channel{c}" for c in range(19)]
    rows = np.column_stack([np.random.default_rng(0).normal(size=(1500, 19)), counted(2, length=1500)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch("last-value", budget="1/200 rows").fit(Series(rows, channels=(*names, "total")))
    watch.save(tmp_path / "m.tisat")
    with pytest.raises(SystemExit):
        main(["show", str(tmp_path / "m.tisat")])
    said = capsys.readouterr().out
    assert "total: by their growth per row" in said
    assert all(name in said for name in names)
    assert describe(tmp_path / "m.tisat")["counters"] == ["total"]
