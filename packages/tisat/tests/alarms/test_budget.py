"""Budgets: what users say, and the rate it means."""

import datetime

import numpy as np
import pytest

from tisat.alarms import Budget
from tisat.errors import ParameterError


@pytest.mark.parametrize(
    ("said", "period", "time_steps"),
    [
        ("1/day", 60.0, 1440),
        ("3/week", "1 min", 3360),
        ("0.5/hour", 1.0, 7200),
        ("1 per 12 hours", 60, 720),
        ("2 a day", "1min", 720),
        ("every 2 hours", datetime.timedelta(minutes=1), 120),
        ("1/1000 rows", None, 1000),
        ("1/1000", None, 1000),
        ("2/1000 rows", None, 500),
        (0.001, None, 1000),
        ("0.001", None, 1000),
        ("1e-3", None, 1000),
        ("daily", 60, 1440),
        ("once a day", 60, 1440),
        ("one per day", 60, 1440),
        ("per day", 60, 1440),
        ("one per shift of 8h", 60, 480),
        ("1/shift of 12 hours", 60, 720),
        ("twice a week", 60, 5040),
        ("two false alarms per week", 60, 5040),
        ("weekly", 60, 10080),
        ("0.1%", None, 1000),
        ("0,1 %", None, 1000),
        ("0,001", None, 1000),
        ("0,5/hour", 1.0, 7200),
        ("1/day over 20 machines", 60, 28_800),
        (datetime.timedelta(days=1), np.timedelta64(60, "s"), 1440),
        (np.timedelta64(1, "D"), 60.0, 1440),
    ],
)
def test_what_users_say(said, period, time_steps):
    assert Budget.parse(said, period=period).time_steps == pytest.approx(time_steps)


@pytest.mark.parametrize(
    "said", ["nightly", "1/fortnight", "0/day", 0, 1.0, -0.1, True, None, "1/", "/day", "1/0 rows"]
)
def test_what_nobody_understands_is_refused_with_examples(said):
    with pytest.raises(ParameterError, match="must be a budget such as '1/day'"):
        Budget.parse(said, period=60)


def test_time_without_a_sampling_period_is_refused_with_the_remedy():
    with pytest.raises(ParameterError, match=r"speaks of time.*period='1 min'"):
        Budget.parse("1/day")


def test_more_than_one_alarm_an_time_step_is_refused():
    with pytest.raises(ParameterError, match="more than one row"):
        Budget.parse("1/second", period=60)


def test_a_shift_without_its_length_is_asked_about():
    with pytest.raises(ParameterError, match="how long a shift is: 'one per shift of 8h'"):
        Budget.parse("1/shift", period=60)


def test_the_words_of_a_budget_are_kept_and_read_back():
    for said in ("once a day", "0.1%", "one per shift of 8h", "1/day over 3 machines"):
        budget = Budget.parse(said, period=60)
        assert Budget.parse(str(budget), period=60) == budget
