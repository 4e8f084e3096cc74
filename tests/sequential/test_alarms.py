"""Alarms as objects, tables and pictures."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

import tisat
from tisat.errors import InputError
from tisat.events import events_from_labels
from tisat.sequential import PaperRule, calibrate, make_rule, raise_alarms
from tisat.sequential.alarms import COLUMNS, alarms_of
from tisat.sequential.rules import Scored


def scores_with_events(seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.exponential(size=2000)
    scores[500:540] += 20.0
    scores[1980:] += 20.0
    return scores


@pytest.fixture(scope="module")
def nominal():
    return np.random.default_rng(9).exponential(size=20_000)


@pytest.mark.parametrize("rule", ["threshold", "excess", "paper"])
def test_an_alarm_is_a_run_of_active_instants(rule, nominal):
    alarms = raise_alarms(scores_with_events(), nominal=nominal, false_alarms="1/5000 instants", rule=rule)
    runs = events_from_labels(alarms.active)
    assert len(alarms) == len(runs)
    for alarm, (start, stop) in zip(alarms, runs, strict=True):
        assert alarm.raised == start
        assert alarm.cleared == (None if stop == 2000 else stop)
        assert alarm.onset <= alarm.raised
        assert alarm.peak == alarms.statistic[start:stop].max() >= alarm.threshold == alarms.threshold
    assert (alarms.active == (alarms.statistic >= alarms.threshold)).all()
    assert any(500 <= alarm.raised < 505 for alarm in alarms)
    assert alarms.raised.tolist() == [alarm.raised for alarm in alarms]


def test_an_alarm_that_is_on_at_the_end_is_not_cleared(nominal):
    alarms = raise_alarms(
        scores_with_events(), nominal=nominal, false_alarms="1/5000 instants", rule="threshold", hold=5
    )
    assert alarms[-1].cleared is None


def test_the_onset_is_the_last_instant_the_statistic_was_zero():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 2))
    points[200:] += 1.5  # slow: the statistic needs a while
    rule = PaperRule(form="weibull")
    calibration = calibrate(rule, rng.normal(size=(6000, 2)), "1/1000 instants")
    alarms = alarms_of(Scored.of(points), rule=rule, calibration=calibration)
    first = next(alarm for alarm in alarms if alarm.raised >= 200)
    zeros = np.flatnonzero(alarms.statistic[: first.raised] == 0)
    assert first.onset == zeros[-1]


def test_shares_name_the_channel_that_moved_and_add_up_to_one():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 3))
    points[100:, 1] += 8.0
    nominal = rng.normal(size=(4000, 3))
    for name in ("paper", "excess", "threshold"):
        rule = make_rule(name)
        calibration = calibrate(rule, nominal, "1/1000 instants")
        alarms = alarms_of(
            Scored.of(points),
            rule=rule,
            calibration=calibration,
            series=tisat.Series(points, channels=("a", "b", "c")),
            blame=True,
        )
        hit = next(alarm for alarm in alarms if alarm.raised >= 100)
        assert next(iter(hit.channels)) == "b"
        assert sum(hit.channels.values()) == pytest.approx(1.0)
        assert list(hit.channels.values()) == sorted(hit.channels.values(), reverse=True)


class TestTables:
    @pytest.fixture
    def alarms(self, nominal):
        rule = make_rule("threshold")
        scores = scores_with_events()
        calibration = calibrate(rule, nominal, "1/5000 instants")
        dates = np.datetime64("2026-01-01") + np.arange(2000) * np.timedelta64(60, "s")
        return alarms_of(
            Scored.of(scores), rule=rule, calibration=calibration, blame=True,
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

    def test_no_alarms_make_an_empty_table(self, nominal, tmp_path):
        none = raise_alarms(np.zeros(50), nominal=nominal, false_alarms="1/5000 instants")
        none.write(tmp_path / "none.parquet")
        assert none.to_csv().count("\n") == 1
        assert none.to_jsonl() == ""

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
