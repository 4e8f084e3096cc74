"""What people see: one line a thing in print, a table in a notebook, a table in pandas and polars, a picture."""

import numpy as np
import pytest

from tisat import Series, Watch
from tisat.datasets.synthetic import make_pump
from tisat.metrics import audit, evaluate, evaluate_alarms

PUMP = make_pump(n_train=3000, n_test=900, faults=("vibration doubled",))


@pytest.fixture(scope="module")
def alarms():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Watch("mahalanobis", budget="1/day").fit(PUMP.train).alarms(PUMP.test)


def test_an_alarm_prints_as_one_line_that_says_why(alarms):
    loud = max(alarms, key=lambda one: one.peak)
    said = str(loud)
    assert "\n" not in said
    assert "vibration" in said
    assert "expected" in said
    assert "000000000" not in said
    assert str(loud) in str(alarms)


def test_tables_have_dates(alarms):
    frame = alarms.to_pandas()
    assert frame["raised_time"].dtype.kind == "M"
    assert frame["raised_time"][0] == PUMP.test.timestamps[alarms[0].raised]
    assert alarms.to_polars()["raised_time"].dtype.is_temporal()
    assert len(frame) == len(alarms)


def test_notebooks_get_html_and_nothing_in_it_is_a_tag(alarms):
    evil = Series(np.zeros((3, 1)), channels=("<script>",), name="<b>")
    y = np.asarray(PUMP.test.labels)
    account = audit(y, alarms.scores, delta_max=60)
    scored = evaluate(y, alarms.scores, delta_max=60)
    for thing in (alarms, alarms[0], evil, account, scored, evaluate_alarms(y, alarms, delta_max=60)):
        html = thing._repr_html_()
        assert html.startswith("<")
        assert "<script>" not in html
        assert "<b>" not in html
    assert "EventOutcome(" not in str(account)
    assert "adjusted F1" in str(account)


def test_pictures_come_by_one_rule(alarms):
    from matplotlib.figure import Figure

    assert isinstance(PUMP.test.plot(), Figure)
    assert isinstance(alarms.plot(PUMP.test), Figure)


def test_pandas_series_without_a_name_and_numbered_columns_are_taken():
    import pandas as pd

    from tisat.series import as_series

    clock = pd.date_range("2026-01-01", periods=30, freq="min")
    assert as_series(pd.Series(np.random.default_rng(0).normal(size=30), index=clock)).period == 60.0
    assert as_series(pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), index=clock)).n_channels == 3
