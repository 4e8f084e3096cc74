"""Lines in, results out: every line scored once, whenever the process is killed."""

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tisat
from tisat.detectors import make
from tisat.errors import CalibrationWarning, InputError, SeriesError
from tisat.utils.stage import split_state
from tisat.watch.text_stream import LineReader, after, judge_line, watch_lines

CHANNELS = ("cpu", "disk")


def table(length, seed):
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(length)[:, None] / 9.0 + [0.0, 1.0]) + 0.1 * rng.standard_normal((length, 2))
    values[length // 2 : length // 2 + 20, 1] += 3.0
    values[length // 4] = np.nan
    return values


@pytest.fixture(scope="module")
def detector():
    clean = table(1000, 1)
    clean = np.where(np.isnan(clean), 0.0, clean)
    return make("linear-mean", window=8).fit(tisat.Series(clean, channels=CHANNELS))


@pytest.fixture
def monitor(detector):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return detector.monitor(false_alarms=0.02)


def as_csv(values):
    cells = (",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in values)
    return ["time,cpu,disk\n", *(f"{60 * t},{row}\n" for t, row in enumerate(cells))]


def as_json(values):
    return [
        json.dumps(
            {"time": 60 * t, **{c: None if np.isnan(v) else float(v) for c, v in zip(CHANNELS, row, strict=True)}}
        )
        + "\n"
        for t, row in enumerate(values)
    ]


def judged(monitor, lines, **options):
    output = io.BytesIO()
    watch_lines(monitor, [line.encode() for line in lines], output, any_period=True, **options)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_csv_and_json_lines_give_the_verdicts_of_the_rows(detector, monitor):
    values = table(300, 2)
    expected = [monitor.update(row, time=60.0 * t).to_json() for t, row in enumerate(values)]
    for lines in (as_csv(values), as_json(values)):
        found = judged(monitor.watch.monitor(), lines)
        assert [{**one, "line": None, "time": None} for one in found] == [
            {"line": None, **one, "time": None} for one in expected
        ]
    assert any(one["raised"] for one in expected)


@pytest.mark.parametrize(
    ("lines", "row", "time"),
    [
        (["1.5,2"], [1.5, 2.0], None),
        (["7,1.5,2"], [1.5, 2.0], "7"),
        (["2026-01-01T00:00,1.5,2"], [1.5, 2.0], "2026-01-01T00:00"),
        (["\ufeffcpu,disk,label\n", "1.5,2,0\n"], {"cpu": 1.5, "disk": 2.0}, None),
        (["disk,cpu\n", "\n", "2,1.5\n"], {"cpu": 1.5, "disk": 2.0}, None),
        (["[1.5, 2]"], [1.5, 2], None),
        (['{"cpu": 1.5, "Timestamp": "2026-01-01"}'], {"cpu": 1.5}, "2026-01-01"),
        (['{"cpu": 1.5, "Date": "2026-01-01", "Time": "10:00"}'], {"cpu": 1.5}, "2026-01-01 10:00"),
        (['{"cpu": 1.5, "Date": null, "Time": null}'], {"cpu": 1.5}, None),
        (["Date,Time,cpu,disk\n", " , ,1.5,2\n"], {"cpu": 1.5, "disk": 2.0}, None),
    ],
)
def test_the_ways_to_write_a_row(lines, row, time):
    reader = LineReader(CHANNELS)
    answers = [answer for answer in map(reader, lines) if answer is not None]
    assert answers == [(row, time)]


@pytest.mark.parametrize(
    "line",
    [
        "1",
        "1,2,3,4",
        "a,b",
        "{",
        '{"cpu": "x"}',
        '{"gpu": 1}',
        "[1]",
        "inf,1",
        '{"cpu": 1' + "0" * 400 + "}",
        '{"cpu": 1' + "0" * 9000 + "}",
        '{"cpu": 1, "time": 1' + "0" * 400 + "}",
        '{"cpu": 1, "time": "0001-01-01T00:00+14:00"}',
        "[" * 100_000,
        "1_000,2",
        '{"cpu": true}',
        '{"cpu": "1_000"}',
        "١,2",
    ],
)
def test_a_line_that_cannot_be_read_is_refused_and_changes_nothing(monitor, line):
    reader = LineReader(CHANNELS)
    judge_line(monitor, reader, b"0.5,0.5", 0)
    before = split_state(monitor.state())[0]
    answer = judge_line(monitor, reader, line.encode(), 1)
    assert (answer["line"], answer["row"], answer["status"]) == (1, None, "refused")
    assert answer["reason"]
    assert {**split_state(monitor.state())[0], "counts": None} == {**before, "counts": None}
    assert monitor.tally.refused == 1


OBJECTS = st.dictionaries(
    st.sampled_from(["cpu", "disk", "time", "gpu"]), st.none() | st.floats() | st.text(max_size=4)
)


@given(st.text(max_size=40) | OBJECTS.map(json.dumps))
@example('{"time": 60, "cpu": 1}')
def test_no_text_makes_the_reader_fall_over(text):
    reader = LineReader(CHANNELS, header=["cpu", "disk"])
    good = ({"cpu": 0.5, "disk": -2.0}, None)
    assert reader("0.5,-2") == good
    try:
        read = reader(text)
    except SeriesError:
        pass  # refused in a sentence
    else:
        assert (read is None) == (not text.strip().lstrip("\ufeff"))
    assert reader("0.5,-2") == good  # whatever was there before


def test_a_header_without_the_channels_is_refused():
    with pytest.raises(SeriesError, match=r"Missing: disk; not known to it: gpu"):
        LineReader(CHANNELS)("cpu,gpu")


@pytest.mark.parametrize(("kills", "rows"), [(12, 900), pytest.param(100, 3000, marks=pytest.mark.slow)])
def test_killed_again_and_again_it_loses_nothing_and_repeats_nothing(detector, tmp_path, kills, rows):
    values = table(rows, 3)
    lines = as_csv(values)
    (tmp_path / "rows.csv").write_text("".join(lines))
    detector.save(tmp_path / "model.tisat")
    script = Path(__file__).with_name("watch_killed.py")
    files = [str(tmp_path / name) for name in ("model.tisat", "rows.csv", "state", "verdicts.jsonl")]
    ran = subprocess.run([sys.executable, script, *files, str(kills), "0"], capture_output=True, text=True, check=True)
    done, seen_at_last = map(int, ran.stdout.split())
    assert done == kills
    assert 0 < seen_at_last < len(lines)  # it was killed on the way, not after the end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        monitor = detector.monitor(false_alarms="1/50 rows")
    expected = io.BytesIO()
    watch_lines(monitor, [line.encode() for line in lines], expected)
    assert Path(files[3]).read_bytes() == expected.getvalue()


def test_another_input_is_told_by_its_first_lines_even_where_the_header_is_the_same(monitor):
    lines = [line.encode() for line in as_csv(table(60, 4))]
    note = watch_lines(monitor, lines[:30], io.BytesIO())
    assert list(after(lines, note)) == lines[30:]
    other = [line.encode() for line in as_csv(table(60, 5))]
    with pytest.raises(InputError, match=r"Line 2 is another.*--live"):
        list(after(other, note))
    with pytest.raises(InputError, match="Got only 10"):
        list(after(lines[:10], note))


def test_without_a_period_one_row_from_the_future_does_not_blind(detector):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        monitor = detector.monitor(false_alarms=0.02)
    times = [60, 120, 1.7e12, 180, 240, 300]
    assert [monitor.update([0.0, 0.0], time=t).status == "late" for t in times] == [False] * 6
