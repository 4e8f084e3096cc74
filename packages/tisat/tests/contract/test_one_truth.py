"""One truth: the same rows give the same alarms, however they come in, for every detector and every rule.

A file, a frame with its columns shuffled and a series are the same to the bit; csv lines, JSON lines, a fleet, many rows in a
call and a monitor restored at any place are the same to the bit; and the two groups agree on every alarm, up to the
rounding that a detector admits to. A fleet asks about many machines at once, and is to the bit where it is told to be (``exact=True``).
"""

import copy
import io
import json
import warnings
from functools import lru_cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tisat
from tisat import registry
from tisat.alarms.rules import RULES
from tisat.errors import CalibrationWarning, SeriesError
from tisat.testing import contracts as checks
from tisat.watch import Fleet, Monitor, Watch
from tisat.watch.text_stream import LineReader, watch_lines

CHANNELS = ("flow", "pressure", "heat")
LENGTH = 100
STAMPS = [f"2026-03-09T{t // 60:02d}:{t % 60:02d}:00+02:00" for t in range(LENGTH)]
CASES = [pytest.param(name, rule, id=f"{name}:{rule}") for name in registry.names() for rule in RULES]


@lru_cache
def fitted(name):
    train = checks.example(400, channels=3, seed=1)
    stamps = np.datetime64("2026-03-01") + np.arange(400) * np.timedelta64(60, "s")
    cls = registry.resolve(name)
    return cls(**cls._test_params()).fit(tisat.Series(train, timestamps=stamps, channels=CHANNELS))


def remembering(detector):
    """The detector with its answers about single windows kept: they do not depend on the rule, and cost."""
    other, kept, original = copy.copy(detector), {}, detector._answers

    def answers(windows):
        if len(windows) != 1:
            return original(windows)
        key = windows.tobytes()
        if key not in kept:
            kept[key] = original(windows)
        return kept[key]

    other._answers = answers
    return other


@lru_cache
def watch_of(name, rule):
    detector = fitted(name)
    if rule != "excess":  # under that rule every answer is made anew
        detector = remembered(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return Watch(detector, rule=rule, budget="1/40 rows").calibrate()


@lru_cache
def remembered(name):
    return remembering(fitted(name))


def is_network(detector):
    return type(detector).traits.rounding > 1e-9


def rows():
    values = checks.example(LENGTH, channels=3, seed=2)
    values[40:50, 1] += 9.0
    values[80:82] += 30.0
    values[65, 0] = np.nan
    return values


def table(values):
    return pd.DataFrame(values, columns=list(CHANNELS)).assign(time=STAMPS[: len(values)])


def csv_lines(values):
    cells = (",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in values)
    return ["time,flow,pressure,heat", *(f"{stamp},{row}" for stamp, row in zip(STAMPS, cells, strict=False))]


def json_lines(values):
    return [
        json.dumps(
            {"heat": None if np.isnan(c) else c, "time": stamp, "flow": None if np.isnan(a) else a, "pressure": b}
        )
        for stamp, (a, b, c) in zip(STAMPS, values.tolist(), strict=False)
    ]


def offline(watch, values, folder):
    """The alarms of a series, of frames with shuffled columns and of a file."""
    series = tisat.Series(values, timestamps=STAMPS[: len(values)], channels=CHANNELS, name="rows")
    file = folder / "rows.csv"
    file.write_text("\n".join(csv_lines(values)) + "\n")
    shuffled = table(values)[["heat", "time", "flow", "pressure"]]
    frames = [
        shuffled,
        pl.from_pandas(shuffled),
        shuffled.assign(time=pd.to_datetime(shuffled["time"])).set_index("time"),
    ]
    found = [watch.alarms(series), watch.alarms(str(file)), *(watch.alarms(frame) for frame in frames)]
    return [[{**row, "series": ""} for row in alarms.to_rows()] for alarms in found], found[0]


def judged(watch, lines):
    out = io.BytesIO()
    watch_lines(watch.monitor(name="rows"), [line.encode() + b"\n" for line in lines], out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    return [{key: value for key, value in one.items() if key != "line"} for one in found]


def restarted(watch, values, cuts):
    monitor, found = watch.monitor(name="rows"), []
    for t, row in enumerate(values):
        if t in cuts:
            monitor = Monitor.load(watch, monitor.to_bytes())
        found.append(monitor.update(row, time=STAMPS[t]).to_json())
    return found


def through_a_fleet(watch, values, cuts, folder, *, exact=False):
    fleet, found, start = watch.fleet(["rows", "other"], exact=exact), [], 0
    for stop in [*sorted(cuts), len(values)]:
        items = [(name, values[t], STAMPS[t]) for t in range(start, stop) for name in ("other", "rows")]
        found += [verdict.to_json() for verdict in fleet.judge(items) if verdict.entity == "rows"]
        fleet.snapshot(folder / "fleet")
        fleet = Fleet.load(watch, folder / "fleet")
        start = stop
    return found


def same(found, expected, rounding):
    """Up to the rounding of a detector that is asked about many windows at once: sums in another order differ in last bits."""
    assert [one["status"] for one in found] == [one["status"] for one in expected]
    scores = [[np.nan if one["score"] is None else one["score"] for one in many] for many in (found, expected)]
    np.testing.assert_allclose(*scores, rtol=100 * rounding, atol=1e-9 + 100 * rounding)


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_however_rows_come_in_the_alarms_are_the_same(name, rule, tmp_path):
    watch, values = watch_of(name, rule), rows()
    batches, alarms = offline(watch, values, tmp_path)
    for other in batches[1:]:
        assert other == batches[0]
    expected = judged(watch, csv_lines(values))
    assert judged(watch, json_lines(values)) == expected
    assert restarted(watch, values, {3, 41, 42, 90}) == expected
    rounding = type(watch.detector).traits.rounding
    network = is_network(watch.detector)
    if not network or rule == "excess":  # a network's answers do not depend on the rule, and cost
        many = watch.monitor(name="rows").extend(values, STAMPS[: len(values)])
        assert [verdict.to_json() for verdict in many] == expected
        assert through_a_fleet(watch, values, {20, 45}, tmp_path, exact=True) == expected
    if network or rule == "excess":
        same(through_a_fleet(watch, values, {20, 45}, tmp_path), expected, rounding)
    raised = [one["alarm"] for one in expected if one["raised"]]
    if not network:
        assert [(a["raised"], a["onset"], a["raised_time"]) for a in raised] == [
            (a.raised, a.onset, a.raised_time) for a in alarms
        ]
    if raised:
        assert raised[0]["raised_time"].endswith("+02:00")  # the user's own clock


ROWWISE = [name for name in registry.names() if registry.resolve(name).traits.rounding <= 1e-9]


@pytest.mark.parametrize("name", ROWWISE)
@given(st.sampled_from(sorted(RULES)), st.sets(st.integers(1, LENGTH - 1), max_size=8), st.integers(0, 2**31))
@settings(max_examples=3, deadline=None)
def test_cut_and_restarted_anywhere_with_holes_anywhere(tmp_path_factory, name, rule, cuts, seed):
    rng = np.random.default_rng(seed)
    values = rows()
    values[rng.random(values.shape) < 0.05] = np.nan
    start = int(rng.integers(60))
    values[start : start + int(rng.integers(40)), int(rng.integers(3))] = np.nan  # perhaps a sensor that dies
    values[0] = rows()[0]
    watch = watch_of(name, rule)
    expected = judged(watch, csv_lines(values))
    assert judged(watch, json_lines(values)) == expected
    assert restarted(watch, values, cuts) == expected
    assert through_a_fleet(watch, values, cuts, tmp_path_factory.mktemp("cut"), exact=True) == expected


PAUSES = (2, 10, 11, 40, 999, 1001, 2000, 50_000)  # in sampling periods: bridged, gaps, and gaps to be confirmed


def drawn_times(rng, length, pauses):
    """Times of rows a minute apart, with pauses of these lengths somewhere, perhaps one row after another."""
    steps = np.ones(length)
    for pause in pauses:
        at = int(rng.integers(1, length))
        steps[at : at + int(rng.choice([1, 1, 1, 2, 3, 25]))] = pause
    return np.cumsum(steps) * 60.0


def whole_alarms(alarms):
    """What a file says: every alarm as it stands at the end, the silent channels, and the counts."""
    rows = [{key: value for key, value in one.items() if key != "peak"} for one in alarms.to_rows()]
    return rows, [one.to_json() for one in alarms.silences if one.until is None], alarms.tally


def told_by(monitor, values, times, cuts):
    """The same, put together from what a monitor said row by row, and restored at some places."""
    alarms, silent = {}, {}
    for t, (row, time) in enumerate(zip(values, times, strict=True)):
        if t in cuts:
            monitor = Monitor.load(monitor.watch, monitor.to_bytes())
        verdict = monitor.update(row, time=time)
        if verdict.alarm is not None:
            alarms[verdict.alarm.raised] = verdict.alarm
        for one in verdict.silences:
            silent[one.channel] = one
    if monitor.alarm is not None:
        alarms[monitor.alarm.raised] = monitor.alarm
    rows = [{key: value for key, value in one.to_json().items() if key != "peak"} for one in alarms.values()]
    return rows, [one.to_json() for one in silent.values() if one.until is None], monitor.tally


def rounded(value):
    """Numbers to ten places, for detectors that score many rows at once with another rounding."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.filterwarnings("ignore:.* rows could be scored:tisat.errors.SeriesWarning")
@pytest.mark.parametrize("name", ROWWISE)
@given(
    rule=st.sampled_from(sorted(RULES)),
    pauses=st.lists(st.sampled_from(PAUSES), max_size=3),
    cuts=st.sets(st.integers(1, LENGTH - 1), max_size=3),
    seed=st.integers(0, 2**31),
)
@example(
    rule="threshold", pauses=[], cuts=set(), seed=3022
)  # a statistic of equal values, to which the threshold comes down
@settings(max_examples=4, deadline=None)
def test_pauses_of_any_length_are_the_same_in_a_file_and_row_by_row(name, rule, pauses, cuts, seed):
    rng = np.random.default_rng(seed)
    values, watch = rows(), watch_of(name, rule)
    start = int(rng.integers(70))
    values[start : start + 30] += 30.0 * rng.random()  # an alarm that pauses fall into
    values[rng.random(values.shape) < 0.03] = np.nan
    values[int(rng.integers(60)) :, int(rng.integers(3))] = np.nan if rng.random() < 0.3 else 0.5
    times = drawn_times(rng, LENGTH, pauses)
    file = tisat.Series(values, timestamps=times, channels=CHANNELS, name="rows")
    try:
        expected = whole_alarms(watch.alarms(file, any_period=True))
    except SeriesError:  # a dead sensor from the start: no row could be judged
        return
    assert rounded(told_by(watch.monitor(name="rows"), values, times, cuts)) == rounded(expected)


@pytest.mark.filterwarnings("ignore:Most rows are far:tisat.errors.SeriesWarning")
def test_an_alarm_ends_at_a_gap_of_any_length_and_row_numbers_stay():
    """The reproduction of a pause of 2000 minutes under an alarm: one alarm in a stream, two in a file."""
    for name in ("ecod", "ewma"):
        for pause in (11, 2000):
            values = rows()
            values[40:] += 30.0
            times = np.arange(LENGTH) * 60.0
            times[60:] += 60.0 * pause
            watch = watch_of(name, "threshold")
            expected = whole_alarms(
                watch.alarms(tisat.Series(values, timestamps=times, channels=CHANNELS, name="rows"))
            )
            assert rounded(told_by(watch.monitor(name="rows"), values, times, ())) == rounded(expected)
            first = next(one for one in expected[0] if one["raised"] <= 59 < one["cleared"])
            assert (first["cleared"], first["cleared_time"]) == (60, times[60])


@given(pauses=st.lists(st.sampled_from(PAUSES), max_size=4), seed=st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_without_a_sampling_period_pauses_are_the_same_too(pauses, seed):
    rng, watch = np.random.default_rng(seed), without_a_period()
    values, times = rows(), drawn_times(rng, LENGTH, pauses)
    expected = whole_alarms(watch.alarms(tisat.Series(values, timestamps=times, channels=CHANNELS, name="rows")))
    assert rounded(told_by(watch.monitor(name="rows"), values, times, {50})) == rounded(expected)


@lru_cache
def without_a_period():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        train = tisat.Series(checks.example(400, channels=3, seed=1), channels=CHANNELS)
        return Watch("ecod", budget="1/40 rows").fit(train)


def test_lines_after_a_restart_go_on_where_they_were(tmp_path):
    watch, lines = watch_of("ewma", "excess"), [line.encode() + b"\n" for line in csv_lines(rows())]
    whole = io.BytesIO()
    watch_lines(watch.monitor(), lines, whole)
    with (tmp_path / "out").open("wb") as out:
        note = watch_lines(watch.monitor(), lines[:50], out, state=tmp_path / "state")
        monitor, kept = Monitor.load_with_note(watch, tmp_path / "state")
        assert kept["lines"] == note.lines == 50
        reader = LineReader(watch.channels, header=kept["header"])
        watch_lines(monitor, lines[50:], out, reader=reader, note=note)
    assert (tmp_path / "out").read_bytes() == whole.getvalue()
