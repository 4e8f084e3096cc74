"""Which column is the clock and which holds labels: what was found out is in the notes, what can mean two things is refused."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tisat.errors import SeriesError
from tisat.series import Series
from tisat.watch.text_stream import LineReader

CLOCK = pd.date_range("2026-05-01", periods=30, freq="h", tz="Europe/Berlin")
FRAME = pd.DataFrame({"flow": np.arange(30.0) % 7, "heat": np.cos(np.arange(30.0))}, index=CLOCK)
LENGTHS = np.sin(np.arange(30.0))  # of a channel that happens to be called like a time


@pytest.mark.parametrize("name", ["time", "ds", "date", "Timestamp"])
def test_an_index_of_dates_is_the_time_whatever_a_column_is_called(name, tmp_path):
    table = FRAME.assign(**{name: LENGTHS})
    found = Series.from_table(table)
    assert found.channels == ("flow", "heat", name)
    assert found.stamp(0) == "2026-05-01T00:00:00+02:00"
    assert found.notes == (f"the index was taken for the time, not the column {name!r}",)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_csv(tmp_path / "a.csv")
    for file, clock in (("a.parquet", "__index_level_0__"), ("a.csv", "Unnamed: 0")):
        again = Series.read(tmp_path / file)
        assert (again.channels, again.stamp(0)) == (found.channels, found.stamp(0))
        assert again.notes == (f"the column {clock!r} was taken for the time",)


def test_a_column_that_was_named_is_the_time():
    assert Series.from_table(FRAME.assign(ds=np.arange(30.0)), time="ds").stamp(3) == 3.0
    numbered = pd.DataFrame({0: np.arange(30.0), 1: LENGTHS})
    assert Series.from_table(numbered, time=0).channels == ("1",)
    with pytest.raises(SeriesError, match=r"must be the name of a column. Got 0 instead. Type time='flow'"):
        Series.from_table(FRAME, time=0)
    with pytest.raises(
        SeriesError, match=r"must be one column. Got 'a\+b' instead. Join them: table\['time'\] = pd\.to_"
    ):
        Series.from_table(FRAME.assign(a="2026-01-01", b="10:00"), time="a+b")


def test_a_column_of_dates_beside_an_index_of_dates_repeats_it_or_is_refused():
    found = Series.from_table(FRAME.assign(date=CLOCK))
    assert found.channels == ("flow", "heat")
    assert found.notes == (
        "the index was taken for the time, not the column 'date', which repeats it and was left out",
    )
    with pytest.raises(SeriesError, match=r"drop=\['date'\]\) leaves it out; time='date' makes it the time"):
        Series.from_table(FRAME.assign(date=CLOCK + pd.Timedelta("1h")))


def test_dates_are_the_time_before_numbers_are():
    table = pl.DataFrame({"flow": LENGTHS, "time": LENGTHS, "ts": CLOCK.tz_convert(None).to_numpy()})
    found = Series.from_table(table)
    assert (found.channels, found.notes) == (("flow", "time"), ("the column 'ts' was taken for the time",))
    named = Series.from_table(FRAME.set_axis([f"row {i}" for i in range(30)]).assign(ds=CLOCK))
    assert named.stamp(0) == "2026-05-01T00:00:00+02:00", "an index of words is no time where a column is one"


@pytest.mark.parametrize("label", ["label", "anomaly"])
def test_labels_that_were_found_are_said_and_can_be_kept_as_a_channel(label, tmp_path):
    table = FRAME.assign(**{label: (np.arange(30) > 25).astype(int)})
    table.to_csv(tmp_path / "a.csv", index_label="time")
    for found, option in ((Series.from_table(table), "channels"), (Series.read(tmp_path / "a.csv"), "--channels")):
        assert len(found.events) == 1
        assert found.notes == (f"the column {label!r} was taken for the labels; name it in {option} to keep it",)
    table[label] = LENGTHS
    table.to_csv(tmp_path / "a.csv", index_label="time")
    said = (
        rf"{label!r} is taken for labels and must hold only 0 and 1\. Got .* channels=\[\.\.\.\] .*drop=\['{label}'\]"
    )
    for read in (lambda **how: Series.from_table(table, **how), lambda **how: Series.read(tmp_path / "a.csv", **how)):
        with pytest.raises(SeriesError, match=said):
            read()
        kept = read(channels=["flow", label])
        assert kept.channels == ("flow", label)
        assert kept.labels is None


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_an_index_that_was_saved_without_a_name_is_the_clock_or_counts_rows(suffix, tmp_path):
    file = tmp_path / f"a.{suffix}"

    def saved(table):
        table.to_csv(file) if suffix == "csv" else table.to_excel(file)
        return Series.read(file)

    dated = saved(FRAME.tz_localize(None))
    assert (dated.channels, dated.stamp(1)) == (("flow", "heat"), "2026-05-01T01:00:00")
    counted = saved(FRAME.reset_index(drop=True)[4:9])
    assert (counted.channels, counted.timestamps) == (("flow", "heat"), None)
    assert counted.notes == ("the first column has no name, counts rows and was left out",)
    both = saved(FRAME.tz_localize(None).reset_index(names="time"))
    assert (both.channels, both.stamp(1)) == (("flow", "heat"), "2026-05-01T01:00:00")
    way_on = rf"frame\.to_csv\('a\.{suffix}', index_label='time'\); --drop 'Unnamed: 0', or drop="
    with pytest.raises(SeriesError, match=rf"must hold dates, or count the rows\. Got 0, 3, 6 instead\. .*{way_on}"):
        saved(FRAME.reset_index(drop=True)[::3])
    assert Series.read(file, drop=["Unnamed: 0"]).channels == ("flow", "heat")
    assert Series.read(file, channels=["heat"]).channels == ("heat",)
    with pytest.raises(SeriesError, match=rf"Got 'row 0' instead.*first column, which has no name\. .*{way_on}"):
        saved(FRAME.set_axis([f"row {i}" for i in range(30)]))
    with pytest.raises(SeriesError, match=r"must be the name of a column\. Got 0"):
        Series.read(file, time=0)


def test_epochs_without_a_name_are_the_clock(tmp_path):
    FRAME.set_axis(CLOCK.astype("int64") // 10**9).to_csv(tmp_path / "a.csv")
    assert Series.read(tmp_path / "a.csv").stamp(0) == "2026-04-30T22:00:00Z"


def test_lines_are_read_as_such_files_are():
    reader = LineReader(["flow"])
    assert [reader(",flow"), reader("2026-05-01,3"), reader("17,3")] == [None, ({"flow": 3.0}, "2026-05-01"), ({"flow": 3.0}, None)]  # fmt: skip


def test_objects_that_are_numbers_are_numbers():
    cells = [1.5, None, decimal.Decimal("2.5"), np.float32(3.5), True]
    found = Series.from_table(pd.DataFrame({"flow": pd.Series(cells, dtype=object), "heat": 1.0}))
    np.testing.assert_array_equal(found.values[:, 0], [1.5, np.nan, 2.5, 3.5, 1.0])


@pytest.mark.parametrize("library", [pd, pl])
def test_text_of_numbers_is_answered_with_what_makes_it_numbers(library):
    table = library.DataFrame({"sales": ["1.5", "2", "x"], "heat": [1.0, 2.0, 3.0]})
    way = r"pd\.to_numeric\(table\['sales'\], errors='coerce'\)" if library is pd else r"\.cast\(float, strict=False\)"
    with pytest.raises(SeriesError, match=rf"{way}.*drop=\['sales'\]"):
        Series.from_table(table)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("name", ["unique_id", "machine"])
def test_a_long_frame_is_answered_with_how_to_split_it(library, name):
    table = library.DataFrame({name: ["a", "a", "b", "b"], "ds": [0.0, 60.0, 0.0, 60.0], "y": [1.0, 2.0, 3.0, 4.0]})
    split = rf"table\.groupby\('{name}'\)" if library is pd else rf"table\.partition_by\('{name}', include_key=False\)"
    with pytest.raises(SeriesError, match=split) as caught:
        Series.from_table(table)
    assert (name == "unique_id") == ("drop=[" not in str(caught.value))
    parts = [part.drop(columns=name) for _, part in table.groupby(name)] if library is pd else table.partition_by(name, include_key=False)  # fmt: skip
    assert [Series.from_table(part).values[:, 0].tolist() for part in parts] == [[1.0, 2.0], [3.0, 4.0]]


def test_an_export_of_units_alone_has_no_rows(tmp_path):
    """It was told to leave out every column."""
    (tmp_path / "empty.csv").write_text("time;flow;power\n;m3/h;kW\n")
    with pytest.raises(SeriesError, match="rows of numbers below its header"):
        Series.read(tmp_path / "empty.csv")
