"""Time zones: what is assumed is said, and tables keep the offset of the rows."""

import numpy as np
import pandas as pd
import pytest

from tisat import Watch

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
