"""Online: a row at a time gives what the whole series gives, whatever is missing, late, repeated or interrupted."""

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tisat
from tisat.alarms.rules import Scored, make_rule
from tisat.detectors import make
from tisat.errors import ArtefactError, InputError, ParameterError, SeriesError
from tisat.gap_filling import MAX_GAP, CarryForward, carry_forward
from tisat.io.timestamps import read_time
from tisat.utils.stage import split_state
from tisat.watch import Fleet, Monitor, Watch
from waves import assert_same_verdicts, quietly, troubled, wave

RULES = [
    ("excess", {}),
    ("threshold", {}),
    ("paper", {"form": "weibull"}),
    ("paper", {"form": "power", "end": "recovery"}),
]


@pytest.mark.parametrize(("rule", "options"), RULES)
def test_rows_one_by_one_give_the_alarms_of_the_whole_series(detector, rule, options):
    series = troubled()
    batch = quietly(detector.alarms, series, false_alarms="1/100 rows", rule=make_rule(rule, **options))
    monitor = quietly(detector.monitor, false_alarms="1/100 rows", rule=make_rule(rule, **options), name="machine")
    verdicts = [monitor.update(row, time=time) for row, time in zip(series.values, series.timestamps, strict=True)]
    scores = np.array([verdict.score for verdict in verdicts])
    bound = max(detector.traits.rounding, 1e-12)
    np.testing.assert_allclose(scores, batch.scores, rtol=bound, atol=bound)
    # From the same points the rest is identical to the bit.
    points = np.array([verdict.score for verdict in verdicts])
    if not detector.traits.points_are_channels:
        evidence, trace = monitor.watch.rule.start(threshold=batch.threshold).run(Scored.of(points))
        np.testing.assert_array_equal([verdict.evidence for verdict in verdicts], evidence)
        np.testing.assert_array_equal([verdict.statistic for verdict in verdicts], trace.statistic)
    np.testing.assert_allclose([verdict.statistic for verdict in verdicts], batch.statistic, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal([verdict.active for verdict in verdicts], batch.active)
    raised = [verdict.alarm for verdict in verdicts if verdict.raised]
    assert [(a.raised, a.onset, a.raised_time, a.onset_time) for a in raised] == [
        (a.raised, a.onset, a.raised_time, a.onset_time) for a in batch
    ]
    for online, offline in zip(raised, batch, strict=True):
        assert online.channels.keys() == offline.channels.keys()
        for channel, share in offline.channels.items():
            assert online.channels[channel] == pytest.approx(share, rel=1e-9, abs=1e-12)
    ended = [verdict.alarm for verdict in verdicts if verdict.cleared]
    whole = [alarm for alarm in batch if alarm.cleared is not None]
    assert [(a.raised, a.cleared, a.cleared_time) for a in ended] == [
        (a.raised, a.cleared, a.cleared_time) for a in whole
    ]
    assert [a.peak for a in ended] == pytest.approx([a.peak for a in whole])


def test_a_forecaster_notices_the_event_and_names_the_channel():
    detector = make("linear-mean", window=12).fit(wave(3000, seed=1))
    alarms = quietly(detector.alarms, troubled(), false_alarms="1/200 rows")
    hits = [alarm for alarm in alarms if 300 <= alarm.raised < 305]
    assert len(hits) == 1
    assert next(iter(hits[0].channels)) == "1"
    assert sum(hits[0].channels.values()) == pytest.approx(1.0)
    assert 295 <= hits[0].onset < 301


@pytest.mark.parametrize(("rule", "options"), RULES)
def test_a_monitor_restored_between_any_two_rows_gives_identical_verdicts(detector, rule, options, tmp_path):
    series = troubled(420)
    rows = list(zip(series.values, series.timestamps, strict=True))
    through = quietly(detector.monitor, false_alarms="1/60 rows", rule=make_rule(rule, **options))
    expected = [through.update(row, time=time) for row, time in rows]
    monitor = quietly(detector.monitor, false_alarms="1/60 rows", rule=make_rule(rule, **options))
    found = []
    stops = set(np.random.default_rng(0).choice(len(rows), 12, replace=False).tolist()) | {62, 105, 305}
    for number, (row, time) in enumerate(rows):
        if number in stops:
            monitor.snapshot(tmp_path / "state", note={"row": number})
            monitor, note = Monitor.load_with_note(monitor.watch, tmp_path / "state")
            assert note == {"row": number}
        found.append(monitor.update(row, time=time))
    assert_same_verdicts(found, expected)
    assert monitor.calibration == through.calibration


def test_a_snapshot_of_another_detector_is_refused(tmp_path):
    first, second = (make("linear-mean", window=5).fit(wave(400, seed=seed)) for seed in (1, 2))
    quietly(first.monitor, false_alarms=0.05).snapshot(tmp_path / "state")
    mine, other = (quietly(Watch(one, budget=0.05).calibrate) for one in (first, second))
    with pytest.raises(ArtefactError, match="written with another one"):
        Monitor.load(other, tmp_path / "state")
    with pytest.raises(ArtefactError, match="must hold a fleet"):
        Fleet.load(mine, tmp_path / "state")
    with pytest.raises(ArtefactError, match=r"for 0\.05/row instead.*--recalibrate"):
        Monitor.load(quietly(mine.recalibrated, 0.01), tmp_path / "state")
    gone_on = Monitor.load(quietly(mine.recalibrated, 0.01), tmp_path / "state", recalibrate=True)
    assert gone_on.update([0.0, 0.0, 0.0]).threshold > mine.calibration.threshold


@given(
    st.lists(st.lists(st.one_of(st.just(np.nan), st.floats(-1, 1)), min_size=2, max_size=2), min_size=1, max_size=60)
)
@settings(max_examples=50, deadline=None)
def test_carrying_forward_row_by_row_is_carrying_forward(rows):
    values = np.array(rows)
    carry = CarryForward(["a", "b"])
    np.testing.assert_array_equal([carry.step(row).values for row in values], carry_forward(values))


class TestWhatCanHappenToARow:
    @pytest.fixture
    def monitor(self):
        return quietly(make("linear-mean", window=4).fit(wave(600, seed=1)).monitor, false_alarms=0.02, period=60.0)

    def test_late_and_duplicate_rows_change_nothing(self, monitor):
        rows = wave(60, seed=3)
        expected = monitor.watch.monitor()
        for t, row in enumerate(rows):
            verdict = monitor.update(row, time=60.0 * t)
            twin = expected.update(row, time=60.0 * t)
            assert repr(verdict) == repr(twin)
            assert monitor.update(row + 9, time=60.0 * t).status == "duplicate"
            assert monitor.update(row + 9, time=60.0 * t - 1).status == "late"
        assert (monitor.rows, monitor.tally.late) == (60, 120)

    def test_a_jump_in_time_starts_the_warm_up_again(self, monitor):
        rows = wave(30, seed=3)
        statuses = [
            monitor.update(row, time=60.0 * t + 60.0 * 2 * MAX_GAP * (t >= 20)).status for t, row in enumerate(rows)
        ]
        assert statuses == ["warming up"] * 4 + ["ok"] * 16 + ["warming up"] * 4 + ["ok"] * 6

    def test_a_hole_is_bridged_as_long_as_it_may_be(self, monitor):
        rows = wave(40, seed=3)
        rows[10 : 12 + MAX_GAP] = np.nan
        statuses = [monitor.update(row).status for row in rows]
        assert statuses[10 : 10 + MAX_GAP] == ["ok"] * MAX_GAP
        assert statuses[10 + MAX_GAP : 12 + MAX_GAP] == ["unusable"] * 2
        assert statuses[12 + MAX_GAP] == "warming up"

    def test_detection_goes_on_without_one_channel_where_the_detector_can(self, monitor):
        rows = wave(40, seed=3)
        rows[10 : 12 + MAX_GAP, 1] = np.nan
        verdicts = [monitor.update(row) for row in rows]
        assert [one.status for one in verdicts[4:]] == ["ok"] * 36
        assert not any(np.isnan(one.score) for one in verdicts[4:])

    def test_rows_by_name_are_rows_by_position(self, monitor):
        twin = monitor.watch.monitor()
        for row in wave(10, seed=3):
            named = {"2": row[2], "0": row[0], "1": row[1]}
            assert repr(monitor.update(named)) == repr(twin.update(row))
        assert monitor.update({"0": 1.0, "1": None}).status == "ok"  # what is absent is missing, and carried forward

    @pytest.mark.parametrize(
        ("row", "time", "sentence"),
        [
            ([1.0, 2.0], None, "must have the 3 channels"),
            ([1.0, 2.0, np.inf], None, "finite or NaN.*channel '2'"),
            (["a", "b", "c"], None, "must be 3 numbers"),
            ([1.0, 2.0, 10**400], None, "'2' must be a number"),
            ([1.0, 2.0, 1j], None, "must be 3 numbers"),
            ({"0": "1"}, None, "'0' must be a number. Got '1'"),
            ({"0": True}, None, "'0' must be a number. Got 'True'"),
            ([1.0, 2.0, 3.0], "2300-01-01", "between the years 1678 and 2261"),
            ([1.0, 2.0, 3.0], "0001-01-01T00:00+14:00", "between the years"),
            ([1.0, 2.0, 3.0], 10**400, "between the years"),
            ({"4": 1.0}, None, "channels among 0, 1, 2"),
            ([1.0, 2.0, 3.0], "yesterday", "must be a date such as"),
            ([1.0, 2.0, 3.0], float("nan"), "must be known"),
        ],
    )
    def test_a_bad_row_is_an_error_and_changes_nothing(self, monitor, row, time, sentence):
        monitor.update([0.0, 0.0, 0.0], time=0.0)
        before = split_state(monitor.state())
        with pytest.raises(SeriesError, match=sentence):
            monitor.update(row, time=time)
        after = split_state(monitor.state())
        assert before[0] == after[0]
        for name, array in before[1].items():
            np.testing.assert_array_equal(array, after[1][name])

    def test_dates_and_numbers_do_not_mix(self, monitor):
        monitor.update([0.0, 0.0, 0.0], time=0.0)
        with pytest.raises(SeriesError, match="all dates or all numbers"):
            monitor.update([0.0, 0.0, 0.0], time="2026-01-01")

    def test_memory_does_not_grow(self, monitor):
        def size():
            document, tensors = split_state(monitor.state())
            past = tensors.pop("run.evidence.past", np.empty(0))  # those above the level of a fixed number of scores
            assert len(past) <= tensors.get("run.evidence.lengths", np.zeros(1)).sum()
            return len(repr(sorted(document))), sum(array.nbytes for array in tensors.values())

        for row in wave(50, seed=3):
            monitor.update(row)
        early = size()
        for row in wave(500, seed=4):
            monitor.update(row)
        assert size() == early


def test_times_of_every_kind_are_read():
    midnight = 1_767_225_600 * 10**9  # 2026-01-01 in UTC
    zone = datetime.timezone(datetime.timedelta(hours=2))
    for time in (
        "2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00", np.datetime64("2026-01-01"),
        datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, 2, tzinfo=zone),
    ):  # fmt: skip
        assert read_time(time)[:2] == (True, midnight)
    assert read_time(7) == (False, 7.0, None)
    with pytest.raises(SeriesError):
        read_time(True)


def test_a_budget_in_days_uses_the_period_of_the_training_data(detector):
    monitor = quietly(detector.monitor, false_alarms="6/day")
    assert monitor.calibration.target == 240
    with pytest.raises(ParameterError, match="speaks of time"):
        make("random-guess").fit(np.zeros((100, 1))).monitor(false_alarms="1/day")


class TestTheClock:
    @pytest.fixture
    def monitor(self):
        return quietly(Watch(make("last-value"), budget=0.05, period=60.0).fit, wave(400, seed=1)).monitor()

    def test_one_row_from_the_future_does_not_make_every_later_row_late(self, monitor):
        times = [0, 60, 120, 4_000_000_000.0, 180, 240, 300]
        statuses = [monitor.update([0.0] * 3, time=time).status for time in times]
        assert statuses == ["warming up", "ok", "ok", "unconfirmed", "ok", "ok", "ok"]

    def test_a_second_row_confirms_a_far_jump(self, monitor):
        times = [0, 60, 10_000_000, 10_000_060, 10_000_120, 10_000_180]
        statuses = [monitor.update([0.0] * 3, time=time).status for time in times]
        assert statuses == ["warming up", "ok", "unconfirmed", "warming up", "ok", "ok"]

    def test_a_first_row_from_the_future_is_given_up(self, monitor):
        statuses = [monitor.update([0.0] * 3, time=time).status for time in (90_000_000, 60, 120, 180)]
        assert statuses == ["warming up", "warming up", "ok", "ok"]

    def test_many_late_rows_are_told(self, monitor):
        for time in (0, 60, 120):
            monitor.update([0.0] * 3, time=time)
        assert monitor.trouble is None
        for _ in range(25):
            monitor.update([0.0] * 3, time=60)
        assert "25 rows in a row came late" in monitor.trouble

    def test_another_pace_is_told(self, monitor):
        for t in range(40):
            monitor.update([0.0] * 3, time=300.0 * t)
        assert "every 60 seconds, as in training. Got one every 300" in monitor.trouble

    def test_the_same_rows_are_left_out_in_a_whole_series(self, monitor):
        seconds = np.array([0, 60, 120, 1e7, 1e7 + 60, 1e7 + 120, 3e7, 6e7, 6e7 + 60, 6e7 + 120])
        values = wave(len(seconds), seed=6)
        scores = [monitor.update(row, time=time).score for row, time in zip(values, seconds, strict=True)]
        series = tisat.Series(values, timestamps=seconds, channels=monitor.watch.channels)
        batch = monitor.watch.alarms(series, any_period=True)
        np.testing.assert_array_equal(np.isnan(scores), np.isnan(batch.scores))


def test_a_dead_sensor_is_an_alarm_of_its_own_and_never_zero_alarms():
    names = ("flow", "heat", "power")
    watch = quietly(
        Watch(make("linear-mean", window=8), budget=0.01).fit, tisat.Series(wave(600, seed=1), channels=names)
    )
    values = wave(60, seed=2)
    values[20:45, 1] = np.nan
    series = tisat.Series(values, timestamps=60.0 * np.arange(60), channels=names, name="pump")
    monitor = watch.monitor(name="pump")
    changes = [
        one for row, time in zip(values, series.timestamps, strict=True) for one in monitor.update(row, time).silences
    ]
    (silence,) = watch.alarms(series).silences
    assert (silence.channel, silence.since, silence.noticed, silence.until) == ("heat", 20, 20 + MAX_GAP, 45)
    assert changes[-1] == silence  # the same, online
    assert changes[0].until is None
    values[:, 1] = np.nan
    if not watch.detector.traits.partial:
        with pytest.raises(SeriesError, match=r"None of its 60 could be.*heat \(since row 0\)"):
            watch.alarms(tisat.Series(values, channels=names, name="pump"))


def test_words_change_thresholds_and_silence_does_not(tmp_path):
    watch = quietly(Watch(make("last-value"), budget="1/5000 rows", control=False).fit, wave(2000, seed=1))
    monitor = watch.monitor()
    rows = wave(1500, seed=7)
    rows[300:303] += 3.0
    rows[900:903] += 3.0
    verdicts = [monitor.update(row) for row in rows]
    raised = [verdict.row for verdict in verdicts if verdict.raised]
    assert len(raised) >= 2
    assert {verdict.threshold for verdict in verdicts} == {watch.calibration.threshold}  # nothing moved by itself
    for row in raised:
        monitor.label(row, "false")
    monitor = Monitor.load(watch, monitor.to_bytes())  # what was said is kept
    proposal = monitor.propose()
    assert proposal.false_alarms == len(raised)
    assert any("false alarms" in words for words in proposal.words)
    before = watch.calibration.threshold
    assert watch.adopt(proposal).calibration.threshold == proposal.after.threshold != before
    watch.save(tmp_path / "watch")
    assert Watch.load(tmp_path / "watch").calibration.threshold == proposal.after.threshold
    with pytest.raises(ParameterError, match="made for another"):
        watch.adopt(proposal)
    with pytest.raises(InputError, match="must be one of an alarm"):
        monitor.label(10**6, "true")


def test_an_array_that_the_caller_uses_again_changes_nothing():
    rows = np.random.default_rng(0).normal(size=(1300, 3))
    rows[1100, 0] = np.nan  # carried forward from the row before
    rows[1150:, 1] += 30.0
    watch = Watch("linear-last", budget="1/100 rows").fit(rows[:1000])
    first, second, buffer = watch.monitor(), watch.monitor(), np.empty(3)
    for row in rows[1000:]:
        buffer[:] = row
        assert first.update(buffer).to_json() == second.update(row.copy()).to_json()
    assert first.record.episodes
