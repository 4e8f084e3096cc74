"""Refusals end in something that can be typed where it is read, and that helps."""

import numpy as np
import pandas as pd
import pytest

import tisat
from tisat.detectors import from_pyod, from_sklearn
from tisat.errors import ParameterError, SeriesError

ROWS = np.random.default_rng(0).normal(size=(2000, 3))


def frame(count=2000, index=None):
    return pd.DataFrame(ROWS[:count], columns=list("abc"), index=index)


def test_a_detector_that_does_without_channels_is_not_advised_to_its_own_user():
    watch = tisat.Watch("prism", budget="1/100 rows").fit(frame())
    with pytest.raises(SeriesError, match=r"there is nothing from a .*, b .*, c .*Is it the right file") as refused:
        watch.alarms(frame(300) * np.nan)
    assert "such as prism" not in str(refused.value)


def test_an_empty_channel_is_left_out_by_what_the_refusal_says():
    table = frame()
    table["b"] = np.nan
    with pytest.raises(SeriesError, match=r"or tisat\.Series.from_table") as refused:
        tisat.make("ewma").fit(table)
    typed = str(refused.value).rpartition(", or ")[2].removesuffix(".")
    left = eval(typed, {"tisat": tisat, "table": table})
    assert left.channels == ("a", "c")


@pytest.mark.parametrize(("rows", "said"), [(20, False), (126, True)])
def test_few_rows_for_prism_are_enough_for_others(rows, said):
    with pytest.raises(SeriesError, match="at least 127 usable rows") as refused:
        tisat.make("prism").fit(frame(rows))
    assert ("ewma and mahalanobis" in str(refused.value)) == said
    if said:
        for name in ("ewma", "mahalanobis"):
            tisat.make(name).fit(frame(rows))


@pytest.mark.parametrize("make", [from_sklearn, from_pyod, tisat.make("adapter").__class__])
def test_an_estimator_that_cannot_be_copied_is_refused(make):
    class Mine:
        def fit(self, rows):
            return self

        def decision_function(self, rows):
            return rows.sum(axis=1)

    with pytest.raises(ParameterError, match="must have get_params"):
        make(Mine()).fit(ROWS)


@pytest.mark.parametrize("step", ["10min", "30min", "1h"])
def test_an_hour_that_comes_twice_is_not_dropped(step, tmp_path):
    clock = pd.date_range("2026-10-24", periods=500, freq=step, tz="Europe/Berlin")
    table = frame(500, clock.tz_localize(None))
    with pytest.raises(SeriesError, match="If clocks went back here") as refused:
        tisat.Series.from_table(table)
    assert "duplicated" not in str(refused.value)
    assert (table.tz_localize("Europe/Berlin", ambiguous="infer").index == clock).all()
    table.rename_axis("time").to_csv(tmp_path / "a.csv")
    with pytest.raises(SeriesError, match="--timezone Europe/Berlin"):
        tisat.Series.read(tmp_path / "a.csv")
    assert len(tisat.Series.read(tmp_path / "a.csv", timezone="Europe/Berlin")) == 500


def test_a_time_that_comes_twice_by_day_is_a_duplicate():
    clock = pd.date_range("2026-10-24", periods=500, freq="1h")
    with pytest.raises(SeriesError, match="duplicated"):
        tisat.Series.from_table(frame(500, clock[[*range(15), 14, *range(15, 499)]]))
