"""How many rows of a series could be scored is said where they are few, and what saves a warm-up."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tisat import Watch
from tisat.errors import SeriesWarning

ROWS = np.random.default_rng(0).normal(size=(1500, 2))


def frame(rows, start="2020-01-01"):
    return pd.DataFrame(rows, columns=["a", "b"], index=pd.date_range(start, periods=len(rows), freq="1D"))


@pytest.fixture(scope="module")
def watch():
    return Watch("prism", budget="1/60 days").fit(frame(ROWS[:1000]))


def test_few_scored_rows_are_said_with_the_reason(watch):
    rows = np.random.default_rng(1).normal(size=(1500, 2))
    rows[np.arange(1500) % 130 > 105] = np.nan
    with pytest.warns(
        SeriesWarning, match="rows could be scored: .* warm up, at the beginning and after each gap, 1.* lack values"
    ):
        found = watch.alarms(frame(rows, "2024-01-01"))
    assert found.tally.judged < 750


def test_rows_of_training_in_front_save_the_warm_up(watch):
    table = frame(ROWS)
    with pytest.warns(SeriesWarning, match="The last ([0-9]+) rows of training in front of them") as said:
        watch.alarms(table.iloc[1000:1400])
    count = int(str(said[0].message).partition("The last ")[2].split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert watch.alarms(table.iloc[1000 - count : 1400]).tally.judged == 400
        watch.alarms(frame(ROWS[:150], "2024-01-01"))  # elsewhere there are no such rows
