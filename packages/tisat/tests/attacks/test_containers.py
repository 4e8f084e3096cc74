"""Everything users hold rows in, and numbers at the edges of floats: in fit, score, alarms and monitor a value or one sentence."""

import datetime
import gzip
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tisat
from tisat import registry
from tisat.errors import SeriesError, TisatError
from tisat.series import as_series
from tisat.testing import contracts as checks
from tisat.watch import Watch

ROWS = 300
BASE = checks.example(ROWS, channels=3, seed=1)
DATES = pd.date_range("2026-01-01", periods=ROWS, freq="min")
FRAME = pd.DataFrame(BASE, columns=["a", "b", "c"])


def frame(index, **more):
    return FRAME.set_axis(index, axis=0).assign(**more)


TIMES = {  # an index that is the time: what it says of the first row
    "dates": (DATES, "2026-01-01T00:00:00"),
    "dates of a zone": (DATES.tz_localize("Europe/Berlin"), "2026-01-01T00:00:00+01:00"),
    "text": (pd.Index(DATES.astype(str), name="time"), "2026-01-01T00:00:00"),
    "text without a name": (pd.Index(DATES.astype(str)), "2026-01-01T00:00:00"),
    "text of pandas' own kind": (pd.Index(DATES.astype(str), dtype="string"), "2026-01-01T00:00:00"),
    "day-first text": (pd.Index(DATES.strftime("%d.%m.%Y %H:%M"), name="Zeit"), None),
    "categories": (pd.CategoricalIndex(DATES.astype(str), name="time"), "2026-01-01T00:00:00"),
    "periods": (pd.period_range("2026-01-01", periods=ROWS, freq="min"), "2026-01-01T00:00:00"),
    "differences": (pd.timedelta_range(0, periods=ROWS, freq="min"), 0.0),
    "objects": (pd.Index([one.to_pydatetime() for one in DATES], dtype=object), "2026-01-01T00:00:00"),
    "objects of pandas": (pd.Index(list(DATES), dtype=object), "2026-01-01T00:00:00"),
    "objects of a zone": (
        pd.Index([one.to_pydatetime().replace(tzinfo=datetime.UTC) for one in DATES], dtype=object),
        "2026-01-01T00:00:00Z",
    ),
    "epoch": (pd.Index(1.77e9 + 60.0 * np.arange(ROWS), name="timestamp"), "2026-02-02T02:40:00Z"),
    "epoch without a name": (pd.Index(1_770_000_000 + 60 * np.arange(ROWS)), "2026-02-02T02:40:00Z"),
    "milliseconds": (pd.Index((1_770_000_000 + 60 * np.arange(ROWS)) * 1000, name="ts"), "2026-02-02T02:40:00Z"),
    "seconds": (pd.Index(60.0 * np.arange(ROWS), name="time"), 0.0),
}


@pytest.mark.parametrize("kind", TIMES)
def test_an_index_of_times_is_the_time(kind):
    index, first = TIMES[kind]
    found = as_series(frame(index))
    assert (found.period, found.channels) == (60.0, ("a", "b", "c"))
    assert first is None or found.stamp(0) == first
    assert as_series(frame(index)["a"]).period == 60.0, "of a single column, too"
    with pytest.raises(SeriesError, match="strictly increase"):
        as_series(frame(index[np.random.default_rng(0).permutation(ROWS)]))


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(ROWS),
        pd.RangeIndex(7, 7 + 2 * ROWS, 2),
        pd.Index(np.r_[np.arange(200), np.arange(100)]),  # of two tables joined
        pd.Index(np.arange(ROWS), name="id"),
    ],
)
def test_row_numbers_are_no_times(index):
    assert as_series(frame(index)).timestamps is None


@pytest.mark.parametrize(
    ("index", "type_this"),
    [
        (pd.Index([f"r{t}" for t in range(ROWS)]), "reset_index"),
        (pd.Index(["pump"] * ROWS, name="machine"), "reset_index"),
        (pd.Index(np.linspace(0, 1, ROWS)), "rename_axis"),
        (pd.Index([f"r{t}" for t in range(ROWS)], name="time"), "'time'"),
        (pd.Index([None, *DATES[1:]], dtype=object), "reset_index"),
        (pd.MultiIndex.from_arrays([["x"] * 150 + ["y"] * 150, DATES], names=["machine", "time"]), "entity='machine'"),
        (pd.MultiIndex.from_arrays([DATES, ["x"] * ROWS], names=["time", "machine"]), "droplevel('machine')"),
        (
            pd.MultiIndex.from_arrays([["x"] * ROWS, DATES], names=[None, "time"]),
            "droplevel(0)",
        ),  # as pd.concat makes it
    ],
)
def test_an_index_that_cannot_be_used_is_refused_with_what_to_type(index, type_this):
    with pytest.raises(SeriesError, match="index") as caught:
        as_series(frame(index))
    assert type_this in str(caught.value)


def test_what_a_multi_index_is_told_to_type_works():
    index = pd.MultiIndex.from_arrays([["x"] * 150 + ["y"] * 150, DATES], names=["machine", "time"])
    table = frame(index)
    parts = [part.droplevel("machine") for _, part in table.groupby(level="machine")]
    assert [as_series(part).period for part in parts] == [60.0, 60.0]


@pytest.mark.parametrize("name", ["", "  ", None, np.nan, float("nan")])
def test_a_column_without_a_name_is_a_channel(name):
    table = FRAME.set_axis(["a", name, "c"], axis=1)
    found = as_series(table)
    assert found.channels == ("a", "column 1", "c")
    np.testing.assert_array_equal(found.values, BASE)


@pytest.mark.parametrize("names", [["a", "a", "c"], [1, "1", "c"]])
def test_two_columns_of_one_name_are_one_sentence(names):
    with pytest.raises(SeriesError, match="distinct names"):
        as_series(FRAME.set_axis(names, axis=1))


def tensors():
    torch = pytest.importorskip("torch")
    rows = torch.tensor(BASE)
    return {
        "tensor": rows,
        "tensor with gradients": rows.clone().requires_grad_(),
        "bfloat16": rows.to(torch.bfloat16),
        "float8": rows.to(torch.float8_e5m2),
        "sparse tensor": rows.to_sparse(),
        "complex tensor": rows.to(torch.complex64),
        "tensor on no device": torch.empty((5, 3), device="meta"),
        "bool tensor": rows > 0,
    }


def containers():
    return {
        **tensors(),
        "list of lists": BASE.tolist(),
        "tuple of arrays": tuple(BASE),
        "polars": pl.from_pandas(FRAME),
        "polars with nulls": pl.from_pandas(FRAME).with_columns(pl.when(pl.col("a") > 0).then("a").alias("a")),
        "polars decimals": pl.from_pandas(FRAME).cast(pl.Decimal(20, 4)),
        "lazy polars": pl.from_pandas(FRAME).lazy(),
        "arrow": pa.Table.from_pandas(FRAME),
        "arrow batch": pa.RecordBatch.from_pandas(FRAME),
        "pandas arrow types": FRAME.convert_dtypes(dtype_backend="pyarrow"),
        "pandas nullable": FRAME.convert_dtypes(),
        "pandas objects": FRAME.astype(object),
        "pandas text": FRAME.astype(str),
        "pandas bool": FRAME > 0,
        "pandas int": (FRAME * 100).astype(int),
        "pandas category": FRAME.round().astype("category"),
        "pandas sparse": FRAME.astype(pd.SparseDtype(float)),
        "pandas complex": FRAME.astype(complex),
        "pandas with text": frame(FRAME.index, state="on"),
        "pandas with dates": frame(FRAME.index, moment=DATES),
        "pandas without rows": FRAME[:0],
        "pandas without columns": FRAME[[]],
        "pandas of two levels": FRAME.set_axis(pd.MultiIndex.from_tuples([("p", "a"), ("p", "b"), ("q", "c")]), axis=1),
        "pandas twice": pd.concat([FRAME, FRAME], axis=1),
        "pandas column": FRAME["a"],
        "pandas with labels": frame(FRAME.index, is_anomaly=0),
        "pandas with strange labels": frame(FRAME.index, is_anomaly=7),
        "structured array": np.array([tuple(row) for row in BASE], dtype=[("a", float), ("b", float), ("c", float)]),
        "memory view": memoryview(np.ascontiguousarray(BASE)),
        "bytes": b"1,2,3",
        "dictionary": {"a": BASE[:, 0]},
        "generator": (row for row in BASE),
        "set": {1.0, 2.0},
        "number": 3.0,
        "folder": ".",
        "no such file": "no-such.csv",
        "series": tisat.Series(BASE, timestamps=DATES),
        **{f"index of {kind}": frame(index) for kind, (index, _) in TIMES.items()},
    }


def files(folder):
    """The same rows in files of every encoding, and files that are none."""
    text = FRAME.set_axis(["Zulauf", "Störung", "Höhe"], axis=1).to_csv(index=False)
    contents = {
        **{f"file in {name}": text.encode(name) for name in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1")},
        "file in shift-jis": text.replace("ö", "ホ").encode("shift-jis"),
        "file of carriage returns": text.replace("\n", "\r").encode(),
        "file with a NUL": text.replace("\n", "\n\0", 3).encode(),
        "file of noise": np.random.default_rng(0).bytes(5000),
        "file without a byte": b"",
        "file packed": gzip.compress(text.encode("cp1252")),
        "file packed and cut": gzip.compress(text.encode())[:500],
    }  # fmt: skip
    for name, content in contents.items():
        (folder / f"{name}.csv").write_bytes(content)
    return {name: str(folder / f"{name}.csv") for name in contents}


def scaled():
    alternating = np.tile([[5e-324], [0.0]], (ROWS // 2, 3))
    return {
        **{
            f"scale {scale:g}": BASE * scale for scale in (5e-324, 1e-320, 1e-310, 1e-300, 1e-160, 1e-100, 1e100, 1e300)
        },
        "least float": alternating,
        "one denormal channel": np.column_stack([BASE[:, :2], BASE[:, 2] * 1e-310]),
        "a step of one bit": np.where(BASE > 0, 1.0, np.nextafter(1.0, 2.0)),
        "negative zero": np.where(BASE > 0, 0.0, -0.0),
        "large offset": BASE + 1e16,
        "one denormal": np.where(np.arange(ROWS)[:, None] == 50, 5e-324, BASE),
    }


def outcome(call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except TisatError:
        return None
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:120]}"


def tried(name, inputs):
    """Everything that went wrong with one detector."""
    cls = registry.resolve(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch(cls(**cls._test_params()).fit(FRAME), budget="1/50 rows").calibrate()

    def scores(rows, detector=watch.detector):
        return "an infinite score" if np.isinf(detector.decision_function(rows)).any() else None

    def alarms(rows):
        return None if np.isfinite(watch.alarms(rows, any_period=True).threshold) else "an infinite threshold"

    def one_by_one(rows):
        monitor = watch.monitor()
        for row in list(rows)[:3]:
            monitor.update(row)

    ways = {
        "fit": lambda rows: scores(FRAME, cls(**cls._test_params()).fit(rows)),
        "score": scores,
        "alarms": alarms,
        "monitor": lambda rows: (
            one_by_one(rows) if isinstance(rows, list | tuple | np.ndarray) or hasattr(rows, "detach") else None
        ),
    }
    found = {(what, way): outcome(lambda: call(rows)) for what, rows in inputs.items() for way, call in ways.items()}  # noqa: B023
    return {where: finding for where, finding in found.items() if finding is not None}


@pytest.mark.parametrize("name", ["last-value", "pca"])
def test_whatever_holds_the_rows_is_fine_or_refused(name, tmp_path):
    assert tried(name, {**containers(), **files(tmp_path)}) == {}


def test_a_file_in_any_encoding_has_the_same_rows(tmp_path):
    kept = files(tmp_path)
    for name in ("utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"):
        np.testing.assert_allclose(tisat.Series.read(kept[f"file in {name}"]).values, BASE)


def test_the_matrix_is_no_smaller_than_the_list_it_began_with(tmp_path):
    from attacks.test_bad_input import INPUTS

    assert len({*INPUTS, *containers(), *scaled(), *files(tmp_path)}) >= 119


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_every_detector_takes_or_refuses_every_input(name, tmp_path):
    assert tried(name, {**containers(), **scaled(), **files(tmp_path)}) == {}


CHEAP = [name for name in registry.names() if registry.resolve(name).traits.rounding <= 1e-9]


@pytest.mark.parametrize("name", CHEAP)
def test_numbers_of_any_size_are_fine_or_refused(name):
    assert tried(name, scaled()) == {}
