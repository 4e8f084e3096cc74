import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tisat.errors import DataFileError, InputError, SeriesError
from tisat.series import Series, as_series

MINUTES = pd.date_range("2026-01-01", periods=4, freq="min")
FRAME = pd.DataFrame({"timestamp": MINUTES, "a": [1.0, 2.0, None, 4.0], "b": [1, 2, 3, 4], "label": [0, 1, 1, 0]})


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, lambda f: pa.Table.from_pandas(f)])
def test_every_table_gives_the_same_series(convert):
    series = as_series(convert(FRAME))
    assert series.channels == ("a", "b")
    np.testing.assert_array_equal(series.values, [[1, 1], [2, 2], [np.nan, 3], [4, 4]])
    np.testing.assert_array_equal(series.timestamps, MINUTES.to_numpy().astype("datetime64[ns]"))
    assert series.labels.tolist() == [False, True, True, False]
    assert series.events.tolist() == [[1, 3]]
    assert series.period == 60.0
    assert series.missing == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_give_the_same_series(tmp_path, suffix):
    file = tmp_path / f"pump.{suffix}"
    FRAME.to_csv(file, index=False) if suffix == "csv" else pq.write_table(pa.Table.from_pandas(FRAME), file)
    series, expected = as_series(file), as_series(FRAME)
    assert series.name == "pump"
    np.testing.assert_array_equal(series.values, expected.values)
    np.testing.assert_array_equal(series.timestamps, expected.timestamps)


def test_times_with_a_zone_become_utc():
    frame = FRAME.assign(timestamp=MINUTES.tz_localize("Europe/Berlin"))
    for table in (frame, pl.from_pandas(frame)):
        assert str(as_series(table).timestamps[0]) == "2025-12-31T23:00:00.000000000"


def test_named_columns_win_over_guessed_ones():
    frame = FRAME.rename(columns={"label": "fault"})
    assert as_series(frame).channels == ("a", "b", "fault")
    assert Series.from_table(frame, label="fault").channels == ("a", "b")
    with pytest.raises(SeriesError, match="must have a column 'nope'"):
        Series.from_table(frame, label="nope")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"values": np.zeros((0, 2))}, "at least one row"),
        ({"values": np.zeros((2, 2, 2))}, r"shape \(T, C\)"),
        ({"values": [["a"]]}, "must be numbers"),
        ({"values": [[1.0, 2.0], [3.0, -np.inf]]}, "-inf at row 1, channel '1'"),
        ({"values": np.zeros((3, 1)), "timestamps": [1, 2, 2]}, "a duplicate, 2.0, at row 2"),
        ({"values": np.zeros((3, 1)), "timestamps": [1, 3, 2]}, "an earlier time, 2.0, at row 2"),
        ({"values": np.zeros((3, 1)), "timestamps": [1, np.nan, 2]}, "must all be known. Got nan at row 1"),
        ({"values": np.zeros((3, 1)), "timestamps": [1, 2]}, "one entry a row"),
        ({"values": np.zeros((3, 1)), "timestamps": ["x", "y", "z"]}, "must be a date such as"),
        ({"values": np.zeros((3, 1)), "labels": [0, 1]}, "one entry a row"),
        ({"values": np.zeros((3, 1)), "labels": [0, 1, 2]}, "only 0 and 1"),
        ({"values": np.zeros((3, 2)), "channels": ("a",)}, "must name its 2 columns"),
        ({"values": np.zeros((3, 2)), "channels": ("a", "a")}, "Got 'a' twice"),
    ],
)
def test_bad_series_say_what_and_where(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        Series(**arguments)


def test_bad_files_are_named(tmp_path):
    text = tmp_path / "x.csv"
    text.write_text("a,b\n1,2\n3\n")
    for path, sentence in (
        (text, "x.csv"),
        (tmp_path / "none.csv", "File not found"),
        (tmp_path / "x.xlsx", "File not found"),
    ):
        with pytest.raises(DataFileError, match=sentence):
            as_series(path)
    words = tmp_path / "words.csv"
    words.write_text("a,b\n1,x\n2,y\n")
    with pytest.raises(InputError, match=r"words\.csv: The column 'b' of a table must hold numbers"):
        as_series(words)
    with pytest.raises(SeriesError, match="Got int instead"):
        as_series(3)


def test_gaps_are_reported_and_slices_keep_everything():
    seconds = np.array([0.0, 60, 120, 600, 660, 720])
    series = Series(np.arange(6.0), timestamps=seconds, labels=[0, 0, 1, 1, 0, 0], name="x")
    assert series.gaps.tolist() == [3]
    part = series[2:5]
    assert part.timestamps.tolist() == [120, 600, 660]
    assert part.labels.tolist() == [True, True, False]
    assert part.name == "x"
    with pytest.raises(InputError, match="slice of rows"):
        _ = series[3]


def test_values_are_read_only_and_the_callers_array_is_not():
    mine = np.zeros((3, 1))
    series = Series(mine)
    with pytest.raises(ValueError, match="read-only"):
        series.values[0] = 1.0
    mine[0] = 1.0


def test_selecting_channels():
    series = as_series(FRAME)
    assert series.select(["b"]).values[:, 0].tolist() == [1, 2, 3, 4]
    assert series.without_labels().labels is None
    with pytest.raises(SeriesError, match="no channel 'z'"):
        series.select(["z"])
    with pytest.raises(SeriesError, match="it has none"):
        _ = series.without_labels().events
