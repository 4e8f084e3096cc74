"""One table in many spellings: whichever program wrote it, the same moments and the same numbers are read."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tisat import Series
from tisat.errors import InputError
from tisat.io.columns import Roles
from tisat.io.dates import DateReader
from tisat.io.tables import read_numbers
from tisat.io.time_columns import arrow_times
from tisat.io.timestamps import read_time, read_times


@pytest.mark.parametrize(("offset", "minutes"), [("+02:00", 120), ("+0200", 120), ("+02", 120), ("-0530", -330), ("-05", -300), ("Z", 0)])  # fmt: skip
def test_an_offset_is_the_same_however_it_is_written(offset, minutes):
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    meant = read_time(datetime.datetime(2026, 3, 9, 12, 0, 30, tzinfo=zone))
    assert meant.offset == minutes
    assert read_time(f"2026-03-09T12:00:30{offset}") == meant
    assert DateReader("day-first")(f"09.03.2026 12:00:30 {offset}") == meant
    assert DateReader("%d/%m/%y %T%z")(f"09/03/26 12:00:30{offset}") == meant
    column = arrow_times(pa.array([f"2026-03-09 12:00:30{offset}"] * 2))
    assert column.offsets.tolist() == [minutes] * 2
    assert column.values.astype("int64").tolist() == [meant.value] * 2


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)  # fmt: skip
def test_text_of_every_kind_in_parquet_is_text(tmp_path, kind):
    def written(**columns):
        texts = {name: pa.array(column).cast(kind) for name, column in columns.items()}
        pq.write_table(pa.table({**texts, "flow": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
        return Series.read(tmp_path / "a.parquet")

    minutes = np.arange("2026-03-13T10:00", "2026-03-13T10:03", dtype="datetime64[m]")
    dotted = written(time=[f"13.03.2026 10:0{i}" for i in range(3)])
    assert (dotted.timestamps == minutes).all()
    apart = written(Date=["2026-03-13"] * 3, Time=[f"10:0{i}" for i in range(3)])
    assert (apart.timestamps == minutes).all()
    assert apart.channels == ("flow",)


def test_decimals_in_parquet_are_numbers(tmp_path):
    pq.write_table(pa.table({"flow": [decimal.Decimal("1.25"), None, decimal.Decimal(3)]}), tmp_path / "a.parquet")
    np.testing.assert_array_equal(Series.read(tmp_path / "a.parquet").values[:, 0], [1.25, np.nan, 3.0])


def read(tmp_path, text, **how):
    file = tmp_path / "a.csv"
    file.write_text(text)
    return Series.read(file, **how)


def test_a_column_called_time_that_holds_no_time_of_day_is_left_out(tmp_path):
    found = read(tmp_path, "date,time,flow\n2026-01-01,early,1\n2026-01-02,late,2\n")
    assert (found.channels, str(found.timestamps[1])[:10]) == (("flow",), "2026-01-02")
    assert "the column 'time' was left out; 'date' is the time" in found.notes


def test_dates_that_are_dates_already_are_not_read_again(tmp_path):
    days = [datetime.datetime(2026, 1, day) for day in (1, 2, 3)]
    pq.write_table(pa.table({"time": days, "flow": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
    found = Series.read(tmp_path / "a.parquet", time_format="day-first")
    assert found.period == 86_400.0
    hours = pa.array([datetime.time(hour) for hour in (10, 11, 12)])
    pq.write_table(pa.table({"Date": [days[0]] * 3, "Time": hours, "flow": [1.0, 2.0, 3.0]}), tmp_path / "b.parquet")
    apart = Series.read(tmp_path / "b.parquet", time="Date+Time")
    assert (apart.period, str(apart.timestamps[0])[:13]) == (3600.0, "2026-01-01T10")
    pq.write_table(pa.table({"Date": [1.0, 2.0], "Time": ["10:00", "11:00"], "flow": [1.0, 2.0]}), tmp_path / "c.parquet")  # fmt: skip
    with pytest.raises(InputError, match=r"columns of a date and its time must hold text. Got numbers in 'Date'"):
        Series.read(tmp_path / "c.parquet", time="Date+Time")


def test_times_of_any_kind_in_one_column():
    assert read_times(["90", "120.5"]).values.tolist() == [90.0, 120.5]
    assert DateReader("day-first")(datetime.datetime(2026, 3, 9)) == read_time("2026-03-09")
    assert DateReader("iso")("2026-03-09") == read_time("2026-03-09")
    assert np.isnat(read_times(np.array(["NaT", "NaT"], dtype="datetime64[s]")).values).all()


def workbook(path, sheets):
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet_is_chosen_by_name_or_is_the_first_with_rows(tmp_path):
    rows = [["flow", "on", "when", "note"], [1.5, True, datetime.datetime(2026, 1, 1), None], [2, False, datetime.datetime(2026, 1, 2), None]]  # fmt: skip
    file = workbook(tmp_path / "a.xlsx", {"empty": [], "data": rows, "more": [["heat"], [7]]})
    found = Series.read(file, time="when", drop=["note"])
    assert found.values.tolist() == [[1.5, 1.0], [2.0, 0.0]]
    assert any("read from sheet 'data'; --sheet names another: more" in note for note in found.notes)
    assert Series.read(file, sheet="more").values.tolist() == [[7.0]]
    with pytest.raises(InputError, match=r"have the sheet that --sheet names. Got 'none'; it has empty, data, more"):
        Series.read(file, sheet="none")
    with pytest.raises(InputError, match=r"have a sheet with rows. Got only empty ones"):
        Series.read(workbook(tmp_path / "b.xlsx", {"empty": []}))
    (tmp_path / "c.xlsx").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="be a whole workbook"):
        Series.read(tmp_path / "c.xlsx")


def test_what_cannot_be_a_table_is_one_sentence(tmp_path):
    for text, must in (
        ("# only\n# comments\n", "must"),
        ("flow,flow\n1,2\n", "name each column once"),
        ("flow,\n1,2\n", "name every column"),
        ("flow,heat\n", "at least one row below its header"),
        ("flow,heat\n1,2\n3\n", "have 2 cells in each row. Got 1 at row 1"),
        ("flow\n1\nx\n2\n3\n", "hold a number in column 'flow'. Got 'x' at row 1"),
    ):
        with pytest.raises(InputError, match=must):
            read(tmp_path, text)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="be a whole parquet file"):
        Series.read(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"must exist. Got no such file"):
        read_numbers(tmp_path / "none.csv", names=["a"])
    with pytest.raises(InputError, match=r"distinct names. Got 'a' twice"):
        Roles(["a", "a"], None, None, None, ())


@pytest.mark.parametrize(("text", "values"), [
    ("a;b\n1.234;1\n2.345;2\n", [1.234, 2.345]),
    ("a;b\n1.234;1\n1,234.5;3\n", [1.234, 1234.5]),
    ("words of a logger\na;b\n1;2\n3;4\n5;6\n", [1.0, 3.0, 5.0]),
    ("a,b\n\n,\nbar,°C\n1,2\n3,4\n", [1.0, 3.0]),
    ("a,b\n1,1\n2,2", [1.0, 2.0]),
])  # fmt: skip
def test_tables_as_loggers_write_them(tmp_path, text, values):
    assert read(tmp_path, text, drop=["b"]).values[:, 0].tolist() == values


def test_units_are_shown_whichever_of_two_lines_they_are_in(tmp_path):
    assert "line 2 was taken for units: bar, °C" in read(tmp_path, "a,b\n,\nbar,°C\n1,2\n3,4\n").notes


@pytest.mark.parametrize(
    "units", [";m3/h;degC;-", ";mm_s;Nm;kWh", "local;W/m2/K2;pct;rel", ";m3/h;°C;0/1", ";l/min;0-100 %;0/1"]
)
def test_units_in_plain_letters_are_no_row(tmp_path, units):
    rows = "04.05.2026 00:00;42,1;4,9;1\n04.05.2026 00:01;42,3;4,8;0\n04.05.2026 00:02;42,2;4,7;1\n"
    series = read(tmp_path, f"Zeit;flow;heat;pump\n{units}\n{rows}", time="Zeit")
    assert series.values[:, 0].tolist() == [42.1, 42.3, 42.2]
    assert any("line 2 was taken for units" in note for note in series.notes)


def test_a_row_with_a_time_is_data_whatever_its_words(tmp_path):
    with pytest.raises(InputError, match="must hold numbers"):
        read(tmp_path, "time,flow\n2026-05-04 00:00,Bad\n2026-05-04 00:01,1\n2026-05-04 00:02,2\n")


@pytest.mark.parametrize(
    "text", ['a;b\n"1,5";1\n"2.5";2\n', "more;cells;than;rows\na;b\n1;2\n3;4\n5;6\n", "a,b\nx,y\nu,v\n1,2\n3,4\n"]
)
def test_tables_that_may_mean_two_things_are_refused(tmp_path, text):
    with pytest.raises(InputError, match="must h"):
        read(tmp_path, text, drop=[] if "more" in text else ["b"])


def test_machines_of_a_file_without_a_clock(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("unique_id,flow,label\na,1,0\nb,2,1\na,3,1\n")
    found = Series.read_all(file, entity="unique_id")
    assert {name: (one.values[:, 0].tolist(), one.labels.tolist()) for name, one in found.items()} == {"a": ([1.0, 3.0], [False, True]), "b": ([2.0], [True])}  # fmt: skip
    with pytest.raises(InputError, match="Type --entity unique_id"):
        Series.read(file)
    file.write_text("unique_id,flow\na,1\n,2\n")
    with pytest.raises(InputError, match=r"must name a machine in every row. Got an empty cell at row 1"):
        Series.read(file, entity="unique_id")


def test_a_very_wide_table_of_numbers_is_read_as_such(tmp_path):
    names = ",".join(f"c{i}" for i in range(600))
    row = ",".join(str(i) for i in range(600))
    assert read(tmp_path, f"{names}\n{row}\n{row}\n").values[1, 599] == 599.0
    decimal_commas = read(
        tmp_path, f"{names}\n{row}\n".replace(",", ";") + ";".join(f"{i},5" for i in range(600)) + "\n"
    )
    assert decimal_commas.values[1, 599] == 599.5
    text = read(tmp_path, f"{names},when\n{row},2026-01-01\n{row},2026-01-02\n", time="when")
    assert text.n_channels == 600


def test_an_empty_time_is_named_where_dates_are_written_day_first(tmp_path):
    """Not the first date of the file, which is as good as the others."""
    path = tmp_path / "a.csv"
    path.write_text("time,flow\n13.03.2026 10:00,1\n,2\n13.03.2026 10:02,3\n")
    with pytest.raises(InputError, match=r"must all be known\. Got None at row 1 instead"):
        Series.read(path)
