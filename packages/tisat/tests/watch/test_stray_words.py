"""A stream in which a word comes where a number should: its channel is missing, the others stay watched."""

import io
import json

import numpy as np
import pytest

import tisat
from tisat.errors import SeriesError
from tisat.io.files import Reading
from tisat.watch import Watch
from tisat.watch.stray_words import MOST, StrayWords
from tisat.watch.text_stream import HeaderError, LineReader, judge_line, watch_lines

CHANNELS = ("a", "b", "c")
pytestmark = pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")


@pytest.fixture(scope="module")
def watch():
    rows = np.random.default_rng(0).normal(size=(900, 3))
    return Watch("ewma", budget="1/200 rows").fit(
        tisat.Series(rows, timestamps=60.0 * np.arange(900), channels=CHANNELS)
    )


def judged(monitor, lines, **options):
    output, said = io.BytesIO(), []
    reader = LineReader(CHANNELS, **options)
    watch_lines(monitor, [line.encode() + b"\n" for line in lines], output, reader=reader, report=said.append)
    return [json.loads(line) for line in output.getvalue().splitlines()], said, reader


def as_text(time, row):
    return f"{time}," + ",".join(map(str, row))


def as_json(time, row):
    return json.dumps({"time": time, **dict(zip(CHANNELS, row, strict=True))})


@pytest.mark.parametrize("write", [as_text, as_json])
def test_a_word_nobody_declared_silences_its_channel_alone(watch, write):
    rows = [[*row[:2], "No Data" if t >= 30 else row[2]] for t, row in enumerate(np.random.default_rng(1).normal(size=(60, 3)).tolist())]  # fmt: skip
    lines = [*(["time,a,b,c"] if write is as_text else []), *(write(60.0 * t, row) for t, row in enumerate(rows))]
    found, said, reader = judged(watch.monitor(), lines)
    assert not [one for one in found if one["status"] == "refused"]
    assert [one["data"][0]["channel"] for one in found if "data" in one] == ["c"]
    first = 32 if write is as_text else 31
    assert said[0] == (
        f"line {first}: 'No Data' in column 'c' is no number; it counts as missing (--missing 'No Data' says so beforehand)"
    )
    assert sum("No Data" in one for one in said) == 1, "said once"
    assert reader.words.summary == "30 cells were no numbers and count as missing: 'No Data' in 'c' (30)"
    monitor = watch.monitor()
    gone = [[*row[:2], np.nan if t >= 30 else row[2]] for t, row in enumerate(rows)]
    assert [one["score"] for one in found] == [monitor.update(row, 60.0 * t).to_json()["score"] for t, row in enumerate(gone)]  # fmt: skip


@pytest.mark.parametrize("line", ["60,1.234,5;2;3", "60;1.234,5;1.234,5;x", "60;1,5 bar;2;3", "60;1_000;2;3", "60;?;bad;1", "60;x;y;z"])  # fmt: skip
def test_a_number_written_otherwise_and_a_row_of_words_stay_refused(line):
    how = Reading(seen={"delimiter": ";", "decimal": ","})
    reader = LineReader(CHANNELS, header=["time", *CHANNELS], how=how)
    with pytest.raises(SeriesError):
        reader(line)
    assert not reader.words.summary


def test_a_refusal_names_the_column_and_its_cell_as_it_was_written(watch):
    how = Reading(seen={"delimiter": ";", "decimal": ","})
    reader = LineReader(CHANNELS, header=["time", *CHANNELS], how=how)
    told = judge_line(watch.monitor(), reader, b"60;0,5;1.234,5;2", 1)["reason"]
    assert told == "A row must hold numbers. Got '1.234,5' in column 'b' instead."
    told = judge_line(watch.monitor(), reader, b"60;Bad Input;Bad Input;2", 1)["reason"]
    assert told == (
        "A row must hold numbers in most channels. Got 'Bad Input' in column 'a' instead, and words in 1 more; "
        "if it stands for a missing value: --missing 'Bad Input'"
    )


def test_of_one_channel_every_word_is_a_missing_value_and_of_many_words_few_are_said():
    said = []
    words = StrayWords(1, said.append)
    for t in range(3 * MOST):
        words.numbers(["a"], [f"state {t}"], float)
    assert len(said) == MOST
    assert "'other words' in 'a' (40)" in words.summary


def test_a_stream_without_a_header_says_the_order_of_its_columns_once(watch):
    rows = np.random.default_rng(1).normal(size=(3, 3)).tolist()
    _, said, _ = judged(watch.monitor(), [as_text(60.0 * t, row) for t, row in enumerate(rows)])
    assert said == [
        "line 1: the stream has no header; its columns are taken in the order of training: the time, a, b, c "
        "(tail -n +1 sends the header)"
    ]
    assert judged(watch.monitor(), ["time,a,b,c", as_text(0.0, rows[0])])[1] == []
    found, said, _ = judged(watch.monitor(), ["0,1,No Data,2", "60,1,2,3"])  # a restart while a sensor is dead
    assert len(found) == 2
    with pytest.raises(HeaderError):
        judged(watch.monitor(), ["time,a,x,c"])


def test_a_stream_in_utf8_is_read_by_a_model_of_a_file_in_another_encoding():
    reader = LineReader(["Kühe"], how=Reading(seen={"encoding": "cp1252"}))
    for encoding in ("utf-8", "cp1252"):
        assert reader.decode("time,Kühe".encode(encoding)) == "time,Kühe"
    told = LineReader(["Kühe"], how=Reading(encoding="cp1252"))
    with pytest.raises(HeaderError, match=r"The header is in UTF-8: --encoding utf-8$"):
        told(told.decode("time,Kühe".encode()))
    with pytest.raises(HeaderError, match="Missing: Kühe"):
        LineReader(["Kühe"], how=Reading(encoding="cp1252"))("time,Köhe")
