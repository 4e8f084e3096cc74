"""A backtest scores no row by a model that has seen it, and counts what each budget would have raised."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tisat
from tisat.alarms.budget import Budget
from tisat.cli import main
from tisat.errors import ParameterError, SeriesError
from tisat.plotting.backtest_page import backtest_page
from tisat.series import Series
from tisat.watch.walk_forward import FACTORS, backtest


def history(rows: int = 6000, *, minutes: bool = True) -> Series:
    values = np.random.default_rng(0).normal(size=(rows, 2))
    values[4500:4510, 1] += 25.0
    stamps = np.datetime64("2026-03-01T00:00") + np.arange(rows).astype("timedelta64[m]")
    return Series(values, timestamps=stamps if minutes else None, channels=("flow", "load"), name="pump")


@pytest.fixture(scope="module")
def found():
    return backtest(history(), train="1d", refit="1d", budget="1/day", budgets=["1/week", "1/h"], detector="last-value")


def test_each_step_is_judged_by_a_model_of_the_rows_before(found):
    assert [(step.start, step.stop, step.trained) for step in found.steps] == [
        (1440, 2880, 1440),
        (2880, 4320, 1440),
        (4320, 5760, 1440),
        (5760, 6000, 1440),
    ]


def test_alarms_carry_the_rows_and_times_of_the_whole_series(found):
    fault = next(one for one in found.alarms if 4500 <= one.raised < 4512)
    assert fault.raised_time == history().stamp(fault.raised)
    assert next(iter(fault.channels)) == "load"


def test_a_later_fault_does_not_change_what_came_before():
    plain = history()
    values = plain.values.copy()
    values[5000:] += 9.0
    other = Series(values, timestamps=plain.timestamps, channels=plain.channels, name=plain.name)
    settings = {"train": "1d", "refit": "1d", "budget": "1/day", "budgets": ["1/week"], "detector": "last-value"}
    first, second = backtest(history(), **settings), backtest(other, **settings)
    assert first.steps[:2] == second.steps[:2]


def test_a_rarer_budget_raises_no_more(found):
    assert list(found.counts) == ["1/week", "1/h"]
    assert found.counts["1/week"] <= found.counts["1/h"]
    assert sum(step.allowed for step in found.steps) == pytest.approx(4560 / 1440)


def test_rows_where_there_is_no_clock():
    found = tisat.backtest(history(minutes=False), train=2000, refit="2000 rows", detector="last-value")
    assert [(step.start, step.stop) for step in found.steps] == [(2000, 4000), (4000, 6000)]
    with pytest.raises(ParameterError, match="must be in rows where the series has no clock"):
        backtest(history(minutes=False), train="1d")


def test_a_history_that_is_too_short_is_refused():
    with pytest.raises(SeriesError, match="longer than train='30d'"):
        backtest(history(), train="30d")


def test_the_page_says_each_alarm_once_and_counts_in_whole_alarms(found):
    page = backtest_page(found)
    assert "alarm at" not in page
    assert all(
        page.count(f"<td class='left short'>{str(one.raised_time)[:16].replace('T', ' ')}") for one in found.alarms
    )
    assert "best trivial baseline" not in page
    assert "the budget allows 1'" in page


def test_the_verb_prints_a_table_json_and_a_page(tmp_path, capsys):
    file, page = tmp_path / "pump.csv", tmp_path / "page.html"
    series = history()
    lines = [f"{series.stamp(t)},{a},{b}" for t, (a, b) in enumerate(series.values.tolist())]
    file.write_text("\n".join(["time,flow,load", *lines]) + "\n")
    options = [
        "backtest",
        str(file),
        "--train",
        "2d",
        "--refit",
        "1d",
        "--detector",
        "last-value",
        "--what-if",
        "1/week",
    ]
    with pytest.raises(SystemExit) as done:
        main([*options, "--html", str(page)])
    assert done.value.code in (0, None)
    assert "at 1/week" in capsys.readouterr().out
    assert "What if the budget were another" in page.read_text()
    with pytest.raises(SystemExit):
        main([*options, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert [step["start"] for step in answer["steps"]] == [2880, 4320, 5760]


@pytest.mark.parametrize("name", FACTORS)
def test_the_budgets_beside_one_another_are_what_they_are_called(name):
    assert Budget.parse(name, period=60.0).time_steps * 60.0 == pytest.approx(FACTORS[name])
