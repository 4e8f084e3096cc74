"""The pump in a file of every format people have: read to the same numbers, and its three faults found by the default."""

import csv
import gzip
import io
import json
import re
import zipfile

import numpy as np
import pytest

from tisat import Series
from tisat.datasets.synthetic import make_pump
from tisat.errors import CalibrationWarning, InputError
from tisat.watch import Watch

PUMP = make_pump()
NAMES = list(PUMP.test.channels)


def rows(series, *, stamp="%Y-%m-%d %H:%M:%S", decimal=".", thousands="", split=False, digits=3):
    found = []
    for date, values in zip(series.timestamps.astype("datetime64[s]").tolist(), series.values, strict=True):
        cells = [f"{value:{',' if thousands else ''}.{digits}f}" for value in values]
        if decimal == ",":
            cells = [cell.translate(str.maketrans(",.", ".,")) for cell in cells]
        moment = [date.strftime("%d.%m.%Y"), date.strftime("%H:%M")] if split else [date.strftime(stamp)]
        found.append([*moment, *cells])
    return found


def text(series, *, delimiter=",", above=(), units=None, header=("time",), **how):
    out = io.StringIO()
    for line in above:
        out.write(line + "\n")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow([*header, *NAMES])
    if units:
        writer.writerow([*[""] * len(header), *units])
    writer.writerows(rows(series, **how))
    return out.getvalue()


def sheet(path, series):
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    page = book.create_sheet("log")
    page.append(["time", *NAMES])
    for date, values in zip(series.timestamps.astype("datetime64[s]").tolist(), series.values, strict=True):
        page.append([date, *(round(float(value), 3) for value in values)])
    book.save(path)


def lines(series):
    plain = rows(series, stamp="%Y-%m-%dT%H:%M:%S+01:00")
    return "".join(json.dumps({"time": r[0], **dict(zip(NAMES, map(float, r[1:]), strict=True))}) + "\n" for r in plain)


def packed(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/pump.csv", content)
    return out.getvalue()


def epoch(series, unit):
    stamps = series.timestamps.astype(f"datetime64[{unit}]").astype(np.int64)
    return "ts," + ",".join(NAMES) + "\n" + "".join(
        f"{stamp}," + ",".join(row[1:]) + "\n" for stamp, row in zip(stamps, rows(series), strict=True)
    )  # fmt: skip


UNITS = ["m3/h", "bar", "°C", "mm/s", "A"]
FORMATS = {
    "plain.csv": lambda s: text(s).encode(),
    "semicolon.csv": lambda s: text(s, delimiter=";").encode(),
    "tab.tsv": lambda s: text(s, delimiter="\t").encode(),
    "tab.txt": lambda s: text(s, delimiter="\t").encode(),
    "bar.csv": lambda s: text(s, delimiter="|").encode(),
    "german.csv": lambda s: text(s, delimiter=";", decimal=",", stamp="%d.%m.%Y %H:%M").encode(),
    "german_latin1.csv": lambda s: text(
        s, delimiter=";", decimal=",", stamp="%d.%m.%Y %H:%M:%S", above=["Prüfstand Süd;;"], header=("Zeit",)
    ).encode("cp1252"),
    "decimal_quoted.csv": lambda s: text(s, decimal=",", digits=2).encode(),
    "us.csv": lambda s: text(s, stamp="%m/%d/%Y %I:%M %p").encode(),
    "named_month.csv": lambda s: text(s, stamp="%d-%b-%Y %H:%M").encode(),
    "year_slash.csv": lambda s: text(s, stamp="%Y/%m/%d %H:%M").encode(),
    "split.csv": lambda s: text(s, split=True, header=("Date", "Time")).encode(),
    "units.csv": lambda s: text(s, units=UNITS).encode(),
    "comments.csv": lambda s: ("# pump 7\n# exported\n" + text(s).replace("\n", "\n# a remark\n", 1)).encode(),
    "preamble.csv": lambda s: text(s, above=["Exported by SCADA", "Plant,South"], units=[f"[{u}]" for u in UNITS]).encode(),
    "excel_sep.csv": lambda s: text(s, above=["sep=;"], delimiter=";", decimal=",").encode(),
    "utf16.csv": lambda s: text(s, delimiter="\t").encode("utf-16"),
    "bom.csv": lambda s: text(s).encode("utf-8-sig"),
    "crlf.csv": lambda s: text(s).replace("\n", "\r\n").encode(),
    "offset.csv": lambda s: text(s, stamp="%Y-%m-%dT%H:%M:%S+02:00").encode(),
    "epoch_s.csv": lambda s: epoch(s, "s").encode(),
    "epoch_ms.csv": lambda s: epoch(s, "ms").encode(),
    "packed.csv.gz": lambda s: gzip.compress(text(s).encode()),
    "packed.zip": lambda s: packed(text(s, delimiter=";", decimal=",")),
    "pump.jsonl": lambda s: lines(s).encode(),
    "pump.jsonl.gz": lambda s: gzip.compress(lines(s).encode()),
    "pump.xlsx": sheet,
    "pump.parquet": None,
}  # fmt: skip


def write(folder, name, series):
    file = folder / name
    if name == "pump.xlsx":
        sheet(file, series)
    elif name == "pump.parquet":
        import pyarrow as pa
        from pyarrow import parquet

        columns = {"time": series.timestamps} | {n: series.values[:, c].round(3) for c, n in enumerate(NAMES)}
        parquet.write_table(pa.table(columns), file)
    else:
        file.write_bytes(FORMATS[name](series))
    return file


@pytest.fixture(scope="module")
def watch():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return Watch(budget="1/day").fit(PUMP.train)


@pytest.mark.parametrize("name", FORMATS)
def test_the_three_faults_are_found_in_a_file_of_every_format(watch, tmp_path, name):
    found = Series.read(write(tmp_path, name, PUMP.test))
    assert found.channels == tuple(NAMES)
    assert np.allclose(found.values, PUMP.test.values, atol=6e-3 if "quoted" in name else 6e-4)
    assert np.array_equal(np.diff(found.timestamps), np.diff(PUMP.test.timestamps))
    alarms = watch.alarms(found)
    assert all(alarms.active[fault.start : fault.stop].any() for fault in PUMP.faults)


def test_thousands_separators_are_told_from_decimal_signs(tmp_path):
    for delimiter, cells, values in (
        (",", ('"1,234.50"', '"12,500.00"', "999.25"), (1234.5, 12500, 999.25)),
        (";", ("1.234,50", "12.500,00", "999,25"), (1234.5, 12500, 999.25)),
        (";", ("1 234,5", "12 500,0", "999,2"), (1234.5, 12500, 999.2)),
        (";", ("0,125", "1,500", "12,250"), (0.125, 1.5, 12.25)),
    ):
        file = tmp_path / "thousands.csv"
        file.write_text(
            f"time{delimiter}a{delimiter}b\n" + "".join(f"{i}{delimiter}{c}{delimiter}1\n" for i, c in enumerate(cells))
        )
        assert Series.read(file).values[:, 0].tolist() == list(values)


REFUSED = {
    "time\ta\n1\t1,234\n2\t2,345\n": r"--decimal , if it is a decimal comma, --decimal \. if it divides",
    "time,a\n03/09/2026,1\n04/09/2026,2\n": r"Type --time-format day-first or --time-format month-first",
    "time,a\n03/09/26,1\n04/09/26,2\n": r"year of four digits.*--time-format '%d",
    "time,a,state\n1,1,run\n2,2,run\n": r"column 'state' of a table must hold numbers.*--drop state",
    "time,a\n2,1\n1,2\n": r"strictly increase.*--sort",
    "time,a\n1,1\n1,2\n": r"strictly increase.*--dedup",
    "time,a\n1,1\n2,2\n3,3\n2,2\n4,4\n": r"an earlier time.*Give --sort and --dedup",
    "time,a\n1,1\n3,3\n2,2\n4,4\n": r"an earlier time.*give --sort \(",
    "time,a\n2026-10-25T02:59,1\n2026-10-25T02:00,2\n": r"strictly increase.*--timezone",
    "unique_id,time,a\nx,1,1\ny,1,2\n": r"several machines.*--entity unique_id",
    "time,a\n": r"at least one row",
}  # fmt: skip


@pytest.mark.parametrize("content", REFUSED)
def test_every_refusal_says_what_to_type(tmp_path, content):
    file = tmp_path / "a.csv"
    file.write_text(content)
    with pytest.raises(InputError, match=REFUSED[content]):
        Series.read(file)


def test_what_was_said_is_not_guessed(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("time,a\n03/09/2026,1\n04/09/2026,2\n")
    assert str(Series.read(file, time_format="day-first").timestamps[0])[:10] == "2026-09-03"
    assert str(Series.read(file, time_format="%m/%d/%Y").timestamps[0])[:10] == "2026-03-09"
    file.write_text("time\ta\n1\t1,234\n2\t2,345\n")
    assert Series.read(file, decimal=",").values[0, 0] == 1.234
    assert Series.read(file, decimal=".").values[0, 0] == 1234
    file.write_text("time,a\n3,1\n1,2\n1,4\n")
    assert Series.read(file, sort=True, dedup="mean").values[:, 0].tolist() == [3, 1]
    assert Series.read(file, sort=True, dedup="last").values[:, 0].tolist() == [4, 1]
    with pytest.raises(InputError, match=r"--timezone must be .* Did you mean 'Europe/Berlin'"):
        Series.read(file, timezone="Europe/Berlim")


def test_the_hour_that_comes_twice(tmp_path):
    utc = np.datetime64("2026-10-24T22:00") + np.arange(0, 300, 10).astype("timedelta64[m]")
    local = [str(t + np.timedelta64(120 if t < np.datetime64("2026-10-25T01:00") else 60, "m")) for t in utc]
    file = tmp_path / "a.csv"
    file.write_text("time,a\n" + "".join(f"{t},{i}\n" for i, t in enumerate(local)))
    found = Series.read(file, timezone="Europe/Berlin")
    assert (found.timestamps == utc).all()
    assert found.stamp(0) == "2026-10-25T00:00:00+02:00"
    assert found.stamp(len(found) - 1).endswith("+01:00")


def test_wide_files_and_long_headers_are_read(tmp_path):
    file = tmp_path / "wide.csv"
    names = [f"plant_south_hall_3_line_7_sensor_{i:06d}" for i in range(20_000)]
    file.write_text(",".join(names) + "\n" + 2 * (",".join(["1.5"] * 20_000) + "\n"))
    assert file.read_text().index("\n") > 1 << 18
    assert Series.read(file).values.shape == (2, 20_000)


def test_a_bomb_is_refused(tmp_path):
    file = tmp_path / "bomb.csv.gz"
    with gzip.open(file, "wb") as out:
        out.write(b"time,a\n")
        for _ in range(80):
            out.write(b"0,0\n" * (1 << 18))
    with pytest.raises(InputError, match=r"unpack to at most 250 times its size.*unpack it yourself"):
        Series.read(file)


def test_garbage_is_no_text(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(InputError, match="must be text in UTF-8, or --encoding"):
        Series.read(file)
    file.write_bytes(b"a" * (1 << 25))
    with pytest.raises(InputError, match="header of at most 16 MB"):
        Series.read(file)


def test_notes_say_what_was_found_out(tmp_path):
    found = Series.read(write(tmp_path, "german_latin1.csv", PUMP.test))
    said = " ".join(found.notes)
    for word in ("cp1252", "semicolon", "decimal comma", "above the header", "day-first"):
        assert re.search(word, said), word
    assert found.seen == {"delimiter": ";", "decimal": ",", "encoding": "cp1252", "time_format": "day-first"}


DELIMITED = {
    "Datum;Druck\n09.03.2026 14:00;1,5\n09.03.2026 14:01;2,5\n": (";", ","),
    "flow, m3/h;pressure, bar\n52,1;4,2\n51,9;4,3\n": (";", ","),
    'time,a,note\n1,2.5,"x;y"\n2,2.6,"x;z"\n': (",", "."),
    "a\n1.5\n2.5\n": (",", "."),
    "a\tb\n1,5\t2,5\n1,25\t3,5\n": ("\t", ","),
    "a|b\n1.5|2\n2.5|3\n": ("|", "."),
}  # fmt: skip


@pytest.mark.parametrize("content", DELIMITED)
def test_delimiters_are_told(tmp_path, content):
    from tisat.io.dialect import sniff

    file = tmp_path / "a.csv"
    file.write_text(content)
    found = sniff(file)
    assert (found.delimiter, found.decimal) == DELIMITED[content]


def test_one_stray_cell_is_the_cells_fault_and_a_column_of_text_the_columns(tmp_path):
    file = tmp_path / "a.csv"
    rows = [f"2026-03-09 00:{minute:02d},{minute}.5,RUN" for minute in range(40)]
    rows[20] = "2026-03-09 00:20,Bad,RUN"
    file.write_text("time,flow,state\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"hold a number in column 'flow'.*'Bad'.*row 20"):
        Series.read(file, drop=["state"])
    rows[20] = "2026-03-09 00:20,20.5,RUN"
    file.write_text("time,flow,state\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match="--drop state"):
        Series.read(file)
