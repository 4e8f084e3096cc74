"""What cells, times and columns may be at their edges: one moment in many spellings, and what is refused with a sentence."""

import datetime
import gzip
import zipfile
import zoneinfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tisat import Series
from tisat.errors import InputError
from tisat.io.columns import clock_like, order_of, time_columns
from tisat.io.dates import DateReader, check_format, guess_format
from tisat.io.dialect import sniff
from tisat.io.durations import nanoseconds_of
from tisat.io.files import Reading, check_file
from tisat.io.missing_values import is_number
from tisat.io.text_lines import Writing
from tisat.io.time_columns import arrow_times, in_time_order, is_time_of_day
from tisat.io.time_zones import in_zone
from tisat.io.timestamps import Times, read_time, read_times, say

MOMENT = datetime.datetime(2026, 3, 9, 14, 20, 5)
MOMENTS = st.datetimes(datetime.datetime(1971, 1, 1), datetime.datetime(2068, 1, 1)).map(
    lambda t: t.replace(microsecond=0)
)
PATTERNS = ("%d.%m.%Y %H:%M:%S", "%m/%d/%y %I:%M:%S %p", "%F %T", "%d-%b-%Y %H:%M:%S", "%Y %j %T", "%d %B %Y, %T")


@pytest.mark.parametrize("form", ["day-first", "month-first", "year-first", *PATTERNS])
@settings(max_examples=20)
@given(moment=MOMENTS)
def test_a_date_written_by_a_pattern_is_read_back(form, moment):
    words = {"day-first": "%d/%m/%Y %H:%M:%S", "month-first": "%m/%d/%Y %I:%M:%S %p", "year-first": "%Y/%m/%d %H:%M:%S"}
    pattern = words.get(form, form).replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
    assert DateReader(form)(moment.strftime(pattern)) == read_time(moment.isoformat())


@settings(max_examples=30)
@given(moment=MOMENTS, minutes=st.sampled_from([-570, -60, 0, 60, 345]))
def test_one_moment_in_every_spelling(moment, minutes):
    zoned = moment.replace(tzinfo=datetime.timezone(datetime.timedelta(minutes=minutes)))
    found = read_time(zoned)
    assert found == read_time(zoned.isoformat()) == read_time(pd.Timestamp(zoned))
    assert read_time(say(*found[1:], dates=True)) == found
    assert (
        found.value
        == (zoned - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(seconds=1) * 10**9
    )
    naive = read_time(moment)
    assert naive == read_time(np.datetime64(moment)) == read_time(moment.isoformat())
    assert naive.value - found.value == minutes * 60 * 10**9
    assert read_time(moment.date()) == read_time(moment.date().isoformat())
    for unit, count in {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.items():
        number = naive.value // 10**9 * count
        assert DateReader(unit)(number).value == DateReader(unit)(str(number)).value == naive.value
        if moment.year >= 1986:
            assert read_time(number).value == read_times(np.array([number])).values.astype(int)[0] == naive.value


@pytest.mark.parametrize("bad", [True, None, "soon", "2026-13-01", np.datetime64("NaT"), "1600-01-01", 10**400, np.inf, 1e19,
    "9999-01-01T00:00:00", datetime.datetime(1600, 1, 1), datetime.date(2400, 1, 1), b"x"])  # fmt: skip
def test_what_is_no_moment_is_refused_alone_and_in_a_column(bad):
    with pytest.raises(InputError, match=r"The time of a row must .* Got .*instead"):
        read_time(bad)
    with pytest.raises(InputError, match=r"The time.* must "):
        read_times(np.array([bad, bad], dtype=object))


@pytest.mark.parametrize(("column", "said"), [
    (np.zeros((2, 2)), r"one entry a row. Got shape \(2, 2\)"),
    (np.array([True, False]), "dates or numbers. Got bool"),
    (np.array(["2400-01-01", "2400-01-02"], dtype="datetime64[D]"), "between the years 1678 and 2261"),
    (np.array([1e9, 9e18]), "between the years 1678 and 2261"),
    (["2026-01-01", 3.0], "all dates or all numbers"),
    (["2026-01-01T00:00Z", "2026-01-01T00:01"], "offset from UTC, or none"),
    (["2026-01-01", ""], "must all be known. Got  at row 1"),
    (["2026-01-01", "soon"], "'soon' instead, at row 1"),
])  # fmt: skip
def test_a_column_that_is_no_time_is_refused(column, said):
    with pytest.raises(InputError, match=said):
        read_times(column)


def test_a_time_that_is_not_known_stays_unknown_and_is_refused(tmp_path):
    seconds = np.array([1.77e9, np.nan, 1.77e9 + 0.25])
    found = read_times(seconds)
    assert np.isnat(found.values).tolist() == [False, True, False]
    assert found.values[2] - found.values[0] == np.timedelta64(250, "ms")
    dates = np.array(["2026-01-01", "NaT", "2026-07-01"], dtype="datetime64[ns]")
    for times in (Times(dates), Times(dates, np.zeros(3, dtype=np.int16))):
        for zone in ("Europe/Berlin", "America/New_York"):
            assert np.isnat(in_zone(times, zone).values).tolist() == [False, True, False]
    file = tmp_path / "a.csv"
    for row in range(3):
        stamps = ["" if i == row else f"2026-01-01T00:0{i}:00" for i in range(3)]
        file.write_text("time,a\n" + "".join(f"{stamp},1\n" for stamp in stamps))
        for zone in (None, "Europe/Berlin", "America/New_York"):
            with pytest.raises(InputError, match=f"must all be known. Got .* at row {row}"):
                Series.read(file, timezone=zone)
    for zone in (None, "UTC", "Europe/Berlin"):
        frame = pd.DataFrame({"time": pd.to_datetime(["2026-01-01", None]).tz_localize(zone), "a": [1.0, 2.0]})
        with pytest.raises(InputError, match="must all be known"):
            Series.from_table(frame)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
def test_times_with_an_offset_are_told_in_the_zones_own_clock(zone):
    utc = np.datetime64("2026-01-01", "ns") + np.arange(0, 365 * 24, 7).astype("timedelta64[h]")
    found = in_zone(Times(utc, np.zeros(len(utc), dtype=np.int16)), zone)
    local = [
        t.replace(tzinfo=datetime.UTC).astimezone(zoneinfo.ZoneInfo(zone))
        for t in utc.astype("datetime64[us]").tolist()
    ]
    assert found.offsets.tolist() == [t.utcoffset().total_seconds() / 60 for t in local]
    assert (found.values == utc).all()
    column = pa.array(local, type=pa.timestamp("us", tz=zone))
    assert arrow_times(column).offsets.tolist() == found.offsets.tolist()
    with pytest.raises(InputError, match=r"times that are dates\. Got numbers"):
        in_zone(Times(np.arange(3.0)), zone)


@settings(max_examples=40)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from([1.0, 2.0, 4.0, np.nan]), st.booleans()), min_size=1, max_size=9
    ),
    dedup=st.sampled_from(["first", "last", "mean"]),
)
def test_each_time_once_and_in_order_equals_its_slow_twin(rows, dedup):
    times, values, labels = (np.array(column) for column in zip(*rows, strict=True))
    offsets = (times * 15).astype(np.int16)
    found, kept, labelled, _ = in_time_order(
        Times(times * 1.0, offsets), values[:, None], labels, sort=True, dedup=dedup
    )
    slow = []
    for time in sorted(set(times.tolist())):
        mine = [row for row in rows if row[0] == time]
        known = [value for _, value, _ in mine if value == value]
        mean = sum(known) / len(known) if known else np.nan
        slow.append(
            (time, {"first": mine[0][1], "last": mine[-1][1], "mean": mean}[dedup], any(row[2] for row in mine))
        )
    assert found.values.tolist() == [row[0] for row in slow]
    assert found.offsets.tolist() == [15 * row[0] for row in slow]
    np.testing.assert_array_equal(kept[:, 0], [row[1] for row in slow])
    assert labelled.tolist() == [row[2] for row in slow]


@pytest.mark.parametrize("pattern", ["%d.%m", "%Q", "today", "%d%d%m%Y", "%H:%M"])
def test_a_pattern_without_a_date_is_refused(pattern):
    with pytest.raises(InputError, match=r"--time-format must be iso, .*Got '.*' instead"):
        check_format(pattern)


@pytest.mark.parametrize(("form", "cell"), [
    ("day-first", "31.02.2026"), ("day-first", "09.03.026"), ("day-first", "9 Foo 2026"), ("month-first", "3/9/2026 14:20 PM"),
    ("%d.%m.%Y", "03/09/2026"), ("ms", "soon"), ("s", "9" * 20), ("day-first", "01.01.1600"),
])  # fmt: skip
def test_a_cell_that_is_not_written_so_is_refused(form, cell):
    with pytest.raises(InputError, match=f"must be written as {form}. Got '{cell}'"):
        DateReader(form)(cell)


@pytest.mark.parametrize(("cells", "seen", "form"), [
    (["2026-03-09", "2026-03-10T11:20:05.25+02:00"], "day-first", "iso"), (["2026-03-09", "2026-3-10"], None, "year-first"), (["2026/03/09"], None, "year-first"), (["soon"], None, "iso"), (["soon"], "%j %Y", "%j %Y"),
    (["9-Mar-2026"], None, "day-first"), (["03/04/2026"], "month-first", "month-first"), (["09.03.26"], "%d.%m.%y", "day-first"),
    ([f"{1 + i // 24:02d}/04/2026 {i % 24:02d}:00" for i in range(72)], None, "day-first"),
    ([f"04/{1 + i // 24:02d}/2026 {i % 24:02d}:00" for i in range(72)], None, "month-first"),
])  # fmt: skip
def test_how_dates_are_written_is_told_by_the_column(cells, seen, form):
    assert guess_format(cells, name="t", seen=seen) == form


@pytest.mark.parametrize(
    "cells",
    [["13/01/2026", "01/13/2026"], ["03/04/2026"], ["04/03/2026", "03/03/2026"], ["03/04/2026", "02/02/2026 25:00"]],
)
def test_where_the_order_cannot_be_told_it_is_asked_for(cells):
    with pytest.raises(InputError, match="Type --time-format day-first or --time-format month-first"):
        guess_format(cells, name="t")


def test_one_duration_in_every_spelling():
    ways = (
        "90 min",
        "1,5 hours",
        "1.5h",
        "5400 s",
        5400,
        5400.0,
        np.int64(5400),
        datetime.timedelta(hours=1.5),
        np.timedelta64(90, "m"),
    )
    assert {nanoseconds_of(way, name="n", whose="w") for way in ways} == {5400 * 10**9}
    assert nanoseconds_of("day", name="n", whose="w") == 86_400 * 10**9
    for bad in ("soon", "3 parsecs", "", True, None, 0, -1, "0 s", "80 years", np.timedelta64("NaT"), [1], 10**400,
                np.timedelta64(1, "M"), np.timedelta64(1, "Y"), np.timedelta64(5), float("nan")):  # fmt: skip
        with pytest.raises(InputError, match="'n' parameter of w must be a duration such as"):
            nanoseconds_of(bad, name="n", whose="w")


def test_channels_go_by_name_or_by_number():
    assert order_of(("b", "a", "x"), ("a", "b"), whose="m", ignore_extra=True) == [1, 0]
    assert order_of(("0", "1"), ("a", "b"), whose="m") is None
    for given_, said in ((("0", "1", "2"), "the 2 channels.* Got 3"), (("a", "flo"), "Missing: flow; not known to it: flo. Rename 'flo' to 'flow' if"),
                         (("a", "flow", "z"), "it was fitted on. Not known to it: z. Extra columns can be left out")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            order_of(given_, ("a", "flow"), whose="m")
    names = ["Date", "Time", "ts"]
    assert time_columns(names, "Date+Time", []) == time_columns(names, None, names) == ("Date", "Time")
    assert time_columns([*names, "Date+Time"], "Date+Time", names) == ("Date+Time",)
    assert time_columns(names, None, []) == ("Date",), "the first that is called like a time"
    assert time_columns(names, None, ["ts"]) == ("ts",), "or the first of them that may hold dates"
    assert time_columns(["when"], "when", []) == ("when",)
    assert time_columns(["a"], None, ["a"]) == ()


def test_what_is_a_clock():
    assert clock_like(1.77e9 + np.arange(50.0)) == "a clock"
    for column in (
        np.arange(10.0),
        np.full(50, np.nan),
        np.zeros(50),
        np.cumsum(np.arange(50.0)) + 1,
        2.0 * np.arange(50),
    ):
        assert clock_like(column) == ""
    assert [
        is_time_of_day(pa.array(cells)) for cells in (["14:20", None], ["14:20:05.5", "2:20 pm"], ["2026-01-01"], [1.0])
    ] == [True, True, False, False]
    assert is_time_of_day(pa.array([datetime.time(14, 20)]))


def test_python_reads_numbers_that_files_do_not_mean():
    assert [is_number(cell) for cell in ("1_000", "٣", "1e3", " 2 ", "-")] == [False, False, True, True, True]


def test_lines_are_read_under_the_delimiter_that_fits():
    writing = Writing(Reading(seen={"delimiter": ";", "decimal": ","}))
    writing.choose_delimiter("time,a,b", ["a", "b"])
    assert (writing.delimiter, writing.decimal) == (",", ".")
    assert writing.cells("1|2|3", expected=3) == ["1", "2", "3"]
    writing.choose_delimiter("a;b", ["a", "b"])  # settled by a row
    assert writing.cells("1;2") == ["1;2"]
    marked = Writing(Reading(seen={"comment": "#"}))
    assert [marked.is_comment(line) for line in ("# a", "a")] == [True, False]
    with pytest.raises(InputError, match="A row must be one line of csv"):
        writing.cells("x" * 200_000)


def test_local_times_of_lines_are_those_of_the_file():
    writing = Writing(Reading(timezone="Europe/Berlin"))
    told = [
        writing.time(cell) for cell in ("2026-10-25T02:30", "2026-10-25T02:45", "2026-10-25T02:30", "2026-10-25T03:00")
    ]
    assert [one[-6:] for one in told] == ["+02:00", "+02:00", "+01:00", "+01:00"]
    assert writing.time("2026-01-01T00:00+05:00") == "2026-01-01T00:00:00+05:00"
    assert writing.time(None) is None


ENCODED = {
    "utf-16": "time,a\n1,2\n2,3\n".encode("utf-16"),
    "utf-16-le": "time,a\n1,2\n2,3\n".encode("utf-16-le"),
    "cp1252": "time,°C\n1,2\n2,3\n".encode("cp1252"),
    "latin-1": b"time,\x81\n1,2\n2,3\n",
    "utf-8": b"sep=;\ntime;a\n1;2\n2;3\n",
}


@pytest.mark.parametrize("coding", ENCODED)
def test_text_is_read_in_its_encoding(tmp_path, coding):
    file = tmp_path / "a.csv"
    file.write_bytes(ENCODED[coding])
    assert sniff(file).encoding == coding
    assert Series.read(file).values[:, 0].tolist() == [2.0, 3.0]
    with pytest.raises(InputError, match="--encoding must be one such as"):
        sniff(file, encoding="klingon")
    file.write_bytes(b"time,a\n1,\x81\n")
    with pytest.raises(InputError, match="text in cp1252, as --encoding says; for this file: --encoding latin-1"):
        Series.read(file, encoding="cp1252")


def packed(path, names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "time,a\n1,2\n")


def test_packed_tables_and_files_that_are_none(tmp_path):
    packed(tmp_path / "one.zip", ["a.csv", "readme.md", "__MACOSX/a.csv"])
    assert Series.read(tmp_path / "one.zip").values.tolist() == [[2.0]]
    for names, said in (([], "Got none"), (["a.csv", "b.csv"], "2: a.csv, b.csv")):
        packed(tmp_path / "some.zip", names)
        with pytest.raises(InputError, match=said):
            Series.read(tmp_path / "some.zip")
    whole = gzip.compress(b"time,a\n" + b"1,2\n" * 1000)
    (tmp_path / "half.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "no.xlsx").write_bytes(b"no workbook")
    (tmp_path / "no.parquet").write_bytes(b"no table")
    (tmp_path / "no.jsonl").write_bytes(b"{")
    (tmp_path / "deep.jsonl").write_text('{"time": 1, "a": {"b": 2}}\n')
    for name, said in (("half.csv.gz", "readable to its end"), ("no.xlsx", "a whole workbook"), ("no.parquet", "a whole parquet file"),
                       ("no.jsonl", "one JSON object a line"), ("deep.jsonl", "a nested value in 'a'")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            Series.read(tmp_path / name)
    (tmp_path / "pump.csv").touch()
    for name, said in (("pumb.csv", "^File not found: .*Did you mean 'pump.csv'"), (".", "is a folder"), ("none/a.csv", "^File not found"),
                       ("a.exe", "File not found")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            check_file(tmp_path / name)
    (tmp_path / "a.exe").touch()
    with pytest.raises(InputError, match="must end in one of"):
        check_file(tmp_path / "a.exe")


REFUSED = {
    "": "begin with the names of its columns. Got an empty file",
    "\n\n": "Got an empty line",
    "time,,a\n1,2,3\n": "name every column. Got one without a name, column 2 of 3",
    "time,a,a\n1,2,3\n": "name each column once. Got 'a' twice",
    "time,a\n1,2\n2,3,4\n3,4\n": "have 2 cells in each row. Got 3 at row 1",
    "time,label,a\n1,yes,3\n2,no,4\n": "label column 'label' must hold 0 and 1. Got text",
    "time,label\n1,0\n": "at least one column of values",
}


@pytest.mark.parametrize("content", REFUSED)
def test_a_table_that_is_none_is_refused(tmp_path, content):
    file = tmp_path / "a.csv"
    file.write_text(content)
    with pytest.raises(InputError, match=REFUSED[content]):
        Series.read(file)


@pytest.mark.parametrize(("how", "said"), [
    ({"dedup": "some"}, "--dedup must be first, last or mean"), ({"delimiter": "x"}, "--delimiter must be one of"), ({"tme": "a"}, "Did you mean 'time'"),
    ({"time": "tme"}, "must have a column 'tme'.* Did you mean 'time'"), ({"entity": "b"}, "a machine in every row. Got an empty cell at row 1"),
    ({"drop": ["time", "c"], "timezone": "UTC"}, "must have a time column"), ({"time": "a+c"}, "must hold text. Got numbers in 'a'"),
])  # fmt: skip
def test_options_that_do_not_fit_are_refused(tmp_path, how, said):
    file = tmp_path / "a.csv"
    file.write_text("time,a,b,c\n1,2,3,14:20\n2,3,,14:21\n")
    how = {"drop": ["c"], **how} if "a+c" not in how.values() else how
    with pytest.raises(InputError, match=said):
        Series.read_all(file, **how)


def test_machines_whose_rows_alternate_are_read_apart(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("machine,time,label,a\n" + "".join(f"m{i % 3},{i // 3},{int(i == 4)},{i}\n" for i in range(9)))
    found = Series.read_all(file, entity="machine")
    assert list(found) == ["m0", "m1", "m2"]
    assert {name: one.values[:, 0].tolist() for name, one in found.items()} == {
        "m0": [0, 3, 6],
        "m1": [1, 4, 7],
        "m2": [2, 5, 8],
    }
    assert found["m1"].labels.tolist() == [False, True, False]
    assert found["m2"].timestamps.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros((2, 2), dtype=complex), "must be real. Complex"),
        (np.array(["a", "b"]), "dates go into 'timestamps'"),
        (np.array([10**400, 1], dtype=object), "a number beyond 1e308"),
        (np.array([[1], "x"], dtype=object), "must be numbers. Got dtype object instead"),
        (np.zeros((2, 2, 2)), r"Got shape \(2, 2, 2\)"),
        (np.zeros((2, 0)), r"Got shape \(2, 0\)"),
        (np.zeros((0, 2)), "at least one row"),
    ],
)
def test_values_that_are_none_are_refused(values, said):
    with pytest.raises(InputError, match=said):
        Series(values)
    with pytest.raises(InputError, match=r"one entry a row \(3\). Got shape \(2,\)"):
        Series(np.zeros(3), timestamps=[1.0, 2.0])


def test_what_is_masked_is_missing_and_an_index_of_dates_is_the_time():
    masked = np.ma.MaskedArray([1, 2, 3], mask=[False, True, False])
    np.testing.assert_array_equal(Series(masked).values[:, 0], [1.0, np.nan, 3.0])
    dates = pd.date_range("2026-01-01", periods=3, freq="h")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "label": [0, 1, 0]}, index=dates)
    found = Series.from_table(frame)
    assert (found.timestamps == dates.to_numpy()).all()
    assert (found.labels.tolist(), list(found.channels)) == ([False, True, False], ["a"])
    with pytest.raises(InputError, match="column 'b' of a table must hold numbers"):
        Series.from_table(frame.assign(b="x"))
