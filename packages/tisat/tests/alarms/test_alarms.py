"""Alarms as objects, tables and pictures."""

import csv
import io
import json
from dataclasses import replace
from html import escape

import numpy as np
import pytest

import tisat
from tisat.alarms import PaperRule, calibrate, make_rule, raise_alarms
from tisat.alarms.alarms import COLUMNS, Traced, alarms_of
from tisat.alarms.explanation import Reason
from tisat.alarms.files import read_active
from tisat.alarms.rules import Scored
from tisat.alarms.shares import shares_of
from tisat.errors import DataFileError, InputError
from tisat.events import events_from_labels


def scores_with_events(seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.exponential(size=2000)
    scores[500:540] += 20.0
    scores[1980:] += 20.0
    return scores


@pytest.fixture(scope="module")
def normal():
    return np.random.default_rng(9).exponential(size=20_000)


@pytest.mark.parametrize("rule", ["threshold", "excess", "paper"])
def test_an_alarm_is_a_run_of_active_time_steps(rule, normal):
    alarms = raise_alarms(scores_with_events(), normal=normal, false_alarms="1/5000 rows", rule=rule)
    runs = events_from_labels(alarms.active)
    assert len(alarms) == len(runs)
    for alarm, (start, stop) in zip(alarms, runs, strict=True):
        assert alarm.raised == start
        assert alarm.cleared == (None if stop == 2000 else stop)
        assert alarm.onset <= alarm.raised
        assert alarm.peak == alarms.statistic[start:stop].max() >= alarm.threshold == alarms.thresholds[start]
    assert (alarms.active == (alarms.statistic >= alarms.thresholds)).all()
    assert any(500 <= alarm.raised < 505 for alarm in alarms)
    assert alarms.raised.tolist() == [alarm.raised for alarm in alarms]


def test_an_alarm_that_is_on_at_the_end_is_not_cleared(normal):
    alarms = raise_alarms(scores_with_events(), normal=normal, false_alarms="1/5000 rows", rule="threshold", hold=5)
    assert alarms[-1].cleared is None


def test_the_onset_is_the_last_time_step_the_statistic_was_zero():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 2))
    points[200:] += 1.5  # slow: the statistic needs a while
    rule = PaperRule(form="weibull")
    calibration = calibrate(rule, rng.normal(size=(6000, 2)), "1/1000 rows")
    alarms = alarms_of(Traced.of(Scored.of(points), rule, calibration), rule=rule, calibration=calibration)
    first = next(alarm for alarm in alarms if alarm.raised >= 200)
    zeros = np.flatnonzero(alarms.statistic[: first.raised] == 0)
    assert first.onset == zeros[-1]


def test_shares_name_the_channel_that_moved_and_add_up_to_one():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 3))
    points[100:, 1] += 8.0
    normal = rng.normal(size=(4000, 3))
    for name in ("paper", "excess", "threshold"):
        rule = make_rule(name)
        calibration = calibrate(rule, normal, "1/1000 rows")
        alarms = alarms_of(
            Traced.of(Scored.of(points), rule, calibration),
            rule=rule,
            calibration=calibration,
            series=tisat.Series(points, channels=("a", "b", "c")),
            attribution=True,
        )
        hit = next(alarm for alarm in alarms if alarm.raised >= 100)
        assert next(iter(hit.channels)) == "b"
        assert sum(hit.channels.values()) == pytest.approx(1.0)
        assert list(hit.channels.values()) == sorted(hit.channels.values(), reverse=True)


def test_where_nothing_was_added_every_channel_has_the_same_share():
    assert shares_of(np.array([3.0, 0.0, 1.0])).tolist() == [0.75, 0.0, 0.25]
    assert shares_of(np.zeros(4)).tolist() == [0.25] * 4


class TestTables:
    @pytest.fixture
    def alarms(self, normal):
        rule = make_rule("threshold")
        scores = scores_with_events()
        calibration = calibrate(rule, normal, "1/5000 rows")
        dates = np.datetime64("2026-01-01") + np.arange(2000) * np.timedelta64(60, "s")
        return alarms_of(
            Traced.of(Scored.of(scores), rule, calibration), rule=rule, calibration=calibration, attribution=True,
            series=tisat.Series(scores, timestamps=dates, channels=("x",), name="pump"),
        )  # fmt: skip

    def test_the_three_tables_say_the_same(self, alarms, tmp_path):
        import pyarrow.parquet as parquet

        for suffix in ("csv", "jsonl", "parquet"):
            alarms.write(tmp_path / f"alarms.{suffix}")
        from_json = [json.loads(line) for line in (tmp_path / "alarms.jsonl").read_text().splitlines()]
        from_csv = list(csv.DictReader(io.StringIO((tmp_path / "alarms.csv").read_text())))
        from_parquet = parquet.read_table(tmp_path / "alarms.parquet").to_pylist()
        assert len(from_json) == len(from_csv) == len(from_parquet) == len(alarms) > 0
        assert tuple(from_json[0]) == tuple(from_csv[0]) == tuple(from_parquet[0]) == COLUMNS
        for alarm, a, b, c in zip(alarms, from_json, from_csv, from_parquet, strict=True):
            assert a == alarm.to_json()
            assert c == {**a, "channels": "x 100%", "reasons": alarm.why, "further": alarm.joined}
            assert b == {key: "" if value is None else str(value) for key, value in c.items()}
        assert from_json[0]["raised_time"].startswith("2026-01-01T08:")

    def test_no_alarms_make_an_empty_table(self, normal, tmp_path):
        none = raise_alarms(np.zeros(50), normal=normal, false_alarms="1/5000 rows")
        none.write(tmp_path / "none.parquet")
        assert none.to_csv().count("\n") == 1
        none.to_csv(tmp_path / "none.csv")
        assert (tmp_path / "none.csv").read_text() == none.to_csv()
        assert none.to_jsonl() == ""

    def test_alarms_in_words(self, alarms):
        first = f"{len(alarms)} alarms; {alarms.tally}"
        assert str(alarms) == "\n".join([first, *map(str, alarms), str(alarms.calibration)])
        assert repr(alarms) == f"Alarms({len(alarms)} in 2000 rows, rule='threshold', budget='1/5000 rows')"
        told = replace(alarms[0], reasons=(Reason("x", 0.6, 3.0, 1.0, 0.5), Reason("y", 0.4, 2.0, 1.0, 0.5)))
        assert told.why == "; ".join(map(str, told.reasons))
        assert told.why in str(told)
        assert told._repr_html_() == f"<pre>{escape(str(told))}</pre>"

    def test_other_tables_have_the_columns_and_their_times_are_dates(self, alarms):
        arrow = alarms.to_arrow()
        assert tuple(arrow.column_names) == COLUMNS
        assert arrow["raised"].to_pylist() == alarms.raised.tolist()
        dates = [np.datetime64(alarm.raised_time) for alarm in alarms]
        assert alarms.to_pandas()["raised_time"].tolist() == dates
        assert alarms.to_polars()["raised_time"].to_list() == [date.astype("datetime64[us]").item() for date in dates]

    @pytest.mark.parametrize(
        ("times", "read"),
        [
            (["2026-01-01T08:20:00Z", None], "datetime64[ns, UTC]"),
            (["2026-01-01T08:20:00+01:00", None], "datetime64[ns, UTC]"),
            (["2026-01-01T08:20:00", None], "datetime64[ns]"),
            ([7.5, None], "float64"),
        ],
    )
    def test_a_time_with_an_offset_is_a_date_in_utc(self, alarms, times, read):
        timed = replace(alarms, alarms=tuple(replace(alarms[0], raised_time=time) for time in times))
        assert str(timed.to_pandas()["raised_time"].dtype) == read

    def test_no_cell_is_a_formula(self, alarms):
        evil = replace(alarms, alarms=(replace(alarms[0], series="=HYPERLINK(1)", channels={"=1+1": 1.0}),))
        (row,) = csv.DictReader(io.StringIO(evil.to_csv()))
        assert row["series"] == "'=HYPERLINK(1)"
        assert row["channels"] == "'=1+1 100%"

    def test_a_channel_with_half_a_percent_is_named_and_one_with_less_is_not(self, alarms):
        shared = replace(alarms, alarms=(replace(alarms[0], channels={"a": 0.991, "b": 0.005, "c": 0.004}),))
        (row,) = csv.DictReader(io.StringIO(shared.to_csv()))
        assert [cell.split()[0] for cell in row["channels"].split(";")] == ["a", "b"]

    def test_another_suffix_is_refused(self, alarms, tmp_path):
        with pytest.raises(InputError, match=r"must end in \.csv, \.parquet or \.jsonl"):
            alarms.write(tmp_path / "alarms.xlsx")

    def test_the_picture_shows_series_statistic_and_events(self, alarms, tmp_path):
        values = scores_with_events()
        series = tisat.Series(values, labels=(values > 15).astype(int), channels=("x",), name="pump")
        figure = alarms.plot(series)
        assert [axis.get_ylabel() for axis in figure.axes] == ["x", "statistic"]
        lines = len(alarms)
        assert (
            sum(
                len(line.get_xdata()) == 2 and line.get_xdata()[0] == line.get_xdata()[1]
                for line in figure.axes[0].lines
            )
            == lines
        )
        figure.savefig(tmp_path / "alarms.png")
        assert (tmp_path / "alarms.png").stat().st_size > 1000
        assert len(alarms.plot().axes) == 1
        assert "channels" not in figure.get_suptitle()

    def test_the_picture_has_the_channels_of_the_strongest_alarms_and_says_what_it_leaves_out(self, alarms):
        values = np.repeat(scores_with_events()[:, None], 4, axis=1)
        weak, strong = (
            replace(alarms[0], peak=peak, channels=shares)
            for peak, shares in ((5.0, {"a": 0.9, "b": 0.1}), (9.0, {"d": 0.6, "b": 0.4}))
        )
        named = replace(alarms, alarms=(weak, weak, weak, strong))
        figure = named.plot(tisat.Series(values, channels=("a", "b", "c", "d")), channels=2)
        assert [axis.get_ylabel() for axis in figure.axes] == ["d", "a", "statistic"]
        assert (
            "2 of 4 channels, the strongest alarms' first; not drawn: b, c (channels=4 draws all)"
            in figure.get_suptitle()
        )

    def test_the_axis_says_what_is_true_of_every_row(self, alarms):
        values = scores_with_events()
        dates = np.datetime64("2026-03-29T00:00") + np.arange(len(values)) * np.timedelta64(60, "s")
        for offsets, words in (
            (np.full(len(values), 60), "time at +01:00"),
            (np.where(np.arange(len(values)) < 60, 60, 120), "local time"),
        ):
            axis = alarms.plot(tisat.Series(values, timestamps=dates, offsets=offsets)).axes[-1]
            assert axis.get_xlabel() == words
            drawn = axis.lines[0].get_xdata()
            np.testing.assert_array_equal(drawn, dates + offsets.astype("timedelta64[m]"))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_alarms_come_back_from_their_tables(tmp_path, suffix):
    rng = np.random.default_rng(0)
    scores = rng.exponential(size=3000)
    scores[2000:2040] += 30.0
    scores[2990:] += 30.0
    alarms = raise_alarms(scores, normal=rng.exponential(size=50_000), false_alarms="1/10000 rows")
    file = tmp_path / f"alarms.{suffix}"
    alarms.write(file)
    np.testing.assert_array_equal(read_active(file, length=3000), alarms.active)


def test_bad_tables_are_named(tmp_path):
    file = tmp_path / "alarms.csv"
    file.write_text("raised,cleared\n5,20\n")
    assert read_active(file, length=30).sum() == 15
    with pytest.raises(DataFileError, match=r"within the 10 rows .* \[5, 20\) at row 0"):
        read_active(file, length=10)
    file.write_text("when,cleared\n5,20\n")
    with pytest.raises(DataFileError, match="Row 0 has not"):
        read_active(file, length=30)
    with pytest.raises(DataFileError, match="File not found"):
        read_active(tmp_path / "none.csv", length=30)
