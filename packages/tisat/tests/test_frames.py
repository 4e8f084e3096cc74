"""Every function that takes a series takes frames, arrays and files; what comes out is the same."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tisat
from tisat.datasets.profile import draw_look, look
from tisat.datasets.synthetic import inject_faults, make_plant
from tisat.errors import SeriesError
from tisat.plotting.alarm_page import alarm_page
from tisat.plotting.budget_page import own_study
from tisat.series import as_series


@pytest.fixture(scope="module")
def plant():
    return make_plant(n_train=3000, n_test=1500, n_channels=3, n_faults=1, kinds=("level shift",))


@pytest.fixture(scope="module")
def watch(plant):
    return tisat.Watch("last-value", budget="1/200 rows").fit(plant.train)


def forms(series):
    columns = {name: series.values[:, c] for c, name in enumerate(series.channels)}
    return {
        "pandas": pd.DataFrame(columns, index=pd.DatetimeIndex(series.timestamps)),
        "polars": pl.DataFrame({"time": series.timestamps, **columns}),
        "array": np.array(series.values),
    }


CALLS = {
    "Alarms.plot": lambda watch, data: watch.alarms(data).plot(data),
    "alarm_page": lambda watch, data: alarm_page(watch.alarms(data), data),
    "show_anomalies": lambda watch, data: tisat.show_anomalies(watch, data, interactive=True),
    "suggest": lambda watch, data: tisat.suggest(data),
    "look": lambda watch, data: look(data),
    "draw_look": lambda watch, data: draw_look(data),
    "inject_faults": lambda watch, data: inject_faults(data),
    "own_study": lambda watch, data: own_study(data, detector="last-value"),
    "backtest": lambda watch, data: tisat.backtest(data, train=700, refit=700, detector="last-value", budgets=["1/100 rows"]),
    "compare": lambda watch, data: tisat.compare(data, ["last-value"], n_faults=1),
    "score": lambda watch, data: watch.score(data),
}  # fmt: skip


@pytest.mark.parametrize("form", ["pandas", "polars", "array"])
@pytest.mark.parametrize("call", CALLS)
def test_takes_frames(call, form, plant, watch):
    assert CALLS[call](watch, forms(plant.test)[form]) is not None


def test_the_picture_of_other_rows_is_refused(plant, watch):
    with pytest.raises(SeriesError, match="must be the one of the alarms, 1500 rows"):
        watch.alarms(plant.test).plot(plant.test[:700])


def test_a_lazy_frame_is_refused_with_the_way_on_and_no_warning(plant, watch, recwarn):
    with pytest.raises(SeriesError, match=r"Got LazyFrame instead\. Give it as \.collect\(\)\."):
        watch.alarms(forms(plant.test)["polars"].lazy())
    assert not recwarn.list


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([0, 2, 1], r"give frame\.sort_index\(\)"),
        ([0, 1, 1], r"frame\[~frame\.index\.duplicated\(\)\]"),
        ([0, 70, 10], r"frame\.tz_localize"),
    ],
)
def test_times_of_a_frame_that_do_not_increase_are_answered_in_python(steps, said):
    index = pd.Timestamp("2026-10-25") + pd.to_timedelta(steps, unit="min")
    with pytest.raises(SeriesError, match=f"strictly increase.*{said}") as caught:
        tisat.Watch().fit(pd.DataFrame({"flow": [1.0, 2.0, 3.0]}, index=index))
    assert "--" not in str(caught.value)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_column_of_text_is_refused_with_what_to_do(library):
    table = library.DataFrame({"a": [1.0, 2.0], "op": ["x", "y"]})
    with pytest.raises(SeriesError, match=r"drop=\['op'\]\) leaves it out"):
        tisat.Series.from_table(table)
    assert tisat.Series.from_table(table, drop=["op"]).channels == ("a",)


def test_the_index_of_pandas_that_nobody_named_is_the_time_of_a_parquet_file(tmp_path):
    index = pd.date_range("2026-03-20", periods=30, freq="5min", tz="Europe/Berlin")
    pd.DataFrame({"a": np.sin(range(30)), "b": 1.5}, index=index).to_parquet(tmp_path / "a.parquet")
    found = tisat.Series.read(tmp_path / "a.parquet")
    assert found.channels == ("a", "b")
    assert found.stamp(0) == "2026-03-20T00:00:00+01:00"


def test_a_column_to_drop_that_is_not_there_needs_no_dropping():
    table = pd.DataFrame({"flow": [1.0, 2.0], "status": ["ok", "ok"]})
    assert tisat.Series.from_table(table[["flow"]], drop=["status"]).channels == ("flow",)
    with pytest.raises(SeriesError, match="Did you mean 'status'"):
        tisat.Series.from_table(table, drop=["statsu"])


@pytest.mark.parametrize("library", [pd, pl])
def test_the_only_column_of_dates_is_the_time(library):
    """As in files; a pandas index is the column 'index' after reset_index()."""
    clock = pd.date_range("2026-05-01", periods=30, freq="10min")
    table = library.DataFrame({"index": clock.to_numpy(), "flow": np.arange(30.0) % 7})
    series = as_series(table)
    assert series.channels == ("flow",)
    assert (series.period, series.stamp(1)) == (600.0, "2026-05-01T00:10:00")
    two = library.DataFrame({"Messzeit": clock.to_numpy(), "Versand": clock.to_numpy(), "flow": np.arange(30.0) % 7})
    with pytest.raises(SeriesError, match=r"Series\.from_table\(table, time='Messzeit', drop=\['Versand'\]\)"):
        as_series(two)
    assert tisat.Series.from_table(two, time="Messzeit", drop=["Versand"]).period == 600.0


@pytest.mark.parametrize("library", [pd, pl])
def test_a_column_of_dates_as_text_is_answered_with_the_time(library):
    clock = [str(one) for one in pd.date_range("2026-05-01", periods=30, freq="10min")]
    table = library.DataFrame({"when": clock, "flow": np.arange(30.0) % 7})
    with pytest.raises(SeriesError, match=r"Its text is dates: time='when' makes it the time"):
        as_series(table)
    assert tisat.Series.from_table(table, time="when").period == 600.0


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_a_monitor_takes_a_frame_by_the_names_of_its_columns(form, plant, watch):
    frame = forms(plant.test)[form]
    turned = frame[[name for name in frame.columns if name != "time"][::-1] + ["time"] * (form == "polars")]
    stamps = [plant.test.stamp(row) for row in range(len(plant.test))]
    expected = watch.monitor().extend(np.array(plant.test.values), stamps)
    assert any(result.raised for result in expected)
    for given in (frame, turned, plant.test):
        found = watch.monitor().extend(given)
        assert [(one.score, one.raised, one.time) for one in found if one.status == "ok"] == [
            (one.score, one.raised, one.time) for one in expected if one.status == "ok"
        ]
    names = list(plant.test.channels)
    for wrong, said in (
        (frame[names[:2]], f"Missing: {names[2]}"),
        (pl.DataFrame({"a": [1.0]}).lazy(), r"\.collect\(\)"),
    ):
        with pytest.raises(SeriesError, match=said):
            watch.monitor().extend(wrong)


def test_a_table_is_no_array_of_values():
    """Its names and clock were dropped, or the clock became a channel."""
    with pytest.raises(SeriesError, match=r"Series\.from_table"):
        tisat.Series(pd.DataFrame({"a": [1.0, 2.0]}))


def test_hourly_rows_leave_out_budgets_of_more_than_one_alarm_a_row():
    """far refused every hourly file: 1/hour, which nobody had asked for, is one alarm a row."""
    rows = np.random.default_rng(0).normal(size=(600, 2))
    hours = np.arange(600) * 3600.0
    study = own_study(tisat.Series(rows, timestamps=hours), detector="last-value")
    assert study.ladder[0].budget == "1/8h"
