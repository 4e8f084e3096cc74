"""Time zones: what is assumed is said, and tables keep the offset of the rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tisat import Watch
from tisat.errors import SeriesWarning
from tisat.io.timestamps import read_time
from tisat.watch.training_zone import TrainingZone

ROWS = np.random.default_rng(0).normal(size=(2000, 1))


def frame(start, rows=ROWS, zone=None):
    times = pd.date_range(start, periods=len(rows), freq="1min", tz=zone)
    return pd.DataFrame({"time": times, "level": rows[:, 0]})


@pytest.fixture(scope="module")
def watch():
    return Watch("last-value", budget="1/100 rows").fit(frame("2026-01-01", zone="Europe/Berlin"))


def test_a_monitor_says_what_it_takes_rows_without_a_zone_for(watch):
    monitor = watch.monitor()
    monitor.update([0.0], time="2026-02-01T00:00:00+01:00")
    assert monitor.trouble is None
    monitor.update([0.0], time="2026-02-01T00:01:00")
    assert "no time zone, those of training had +01:00" in monitor.trouble


def test_tables_keep_the_offset_of_the_rows(watch):
    rows = ROWS[:300].copy()
    rows[100:110] = 40.0
    table = watch.alarms(frame("2026-02-01", rows, "Europe/Berlin")).to_pandas()
    assert str(table.raised_time.iloc[0]) == "2026-02-01 01:40:00+01:00"
    both = watch.alarms(frame("2026-03-28 23:00", rows, "Europe/Berlin"))
    assert both.to_polars()["raised_time"].dtype.time_zone == "UTC"


@pytest.fixture
def knowing(monkeypatch):
    """A model of Chicago that knows the calendar."""
    times = pd.date_range("2026-01-01", periods=700, freq="1h", tz="America/Chicago")
    rows = np.random.default_rng(0).normal(size=(len(times), 2))
    found = Watch("last-value", budget="1/100 rows").fit(pd.DataFrame(rows, index=times, columns=["a", "b"]))
    monkeypatch.setattr(type(found.detector), "knows_calendar", True, raising=False)
    return found


def zoned(zone, start="2026-02-10"):
    times = pd.date_range(start, periods=300, freq="1h", tz="America/Chicago").tz_convert(zone)
    return pd.DataFrame(np.random.default_rng(1).normal(size=(300, 2)), index=times, columns=["a", "b"])


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "UTC"])
def test_dates_of_another_zone_are_said_where_the_hour_matters(knowing, zone):
    with pytest.warns(SeriesWarning, match="no dates of the zone of training. Their offset is .*, there it was -06:00"):
        knowing.alarms(zoned(zone))
    monitor = knowing.monitor()
    for time in zoned(zone).index[:3]:
        monitor.update([0.0, 0.0], time)
    assert "no dates of the zone of training" in monitor.trouble
    monitor = knowing.monitor()
    monitor.extend(zoned(zone))
    assert "no dates of the zone of training" in monitor.trouble


@pytest.mark.parametrize("start", ["2026-02-10", "2026-03-05", "2026-07-01", "2026-10-28"])
def test_daylight_saving_is_no_other_zone(knowing, start):
    table = zoned("America/Chicago", start)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeriesWarning)
        knowing.alarms(table)
    monitor = knowing.monitor()
    for time in table.index:
        monitor.update([0.0, 0.0], time)
        assert monitor.trouble is None


def test_the_hour_of_a_change_is_the_old_one():
    zone = TrainingZone({"zone": "+01:00", "start": "2026-01-01T00:00", "stop": "2026-02-01T00:00"}, dated=True)
    for time in (
        "2026-03-29T01:30+01:00",
        "2026-03-29T03:30+02:00",
        "2026-10-25T00:30+02:00",
        "2026-10-25T02:30+01:00",
    ):
        assert zone.note(read_time(time)) == ""
    assert "UTC" in zone.note(read_time("2026-07-05T00:00Z"))
    assert zone.note(read_time("2026-07-05T00:00")).startswith("The rows have no time zone")
    assert TrainingZone({"zone": "+01:00"}, dated=False).note(read_time("2026-07-05T00:00Z")) == ""
