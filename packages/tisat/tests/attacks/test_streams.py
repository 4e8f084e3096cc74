"""Attacks on a stream of rows: headers in the middle, clocks that are set, lines without end, other encodings, signals."""

import io
import json
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

import tisat
from tisat.cli import main
from tisat.errors import SeriesError
from tisat.io.files import Reading
from tisat.watch import Watch
from tisat.watch.input_lines import CHUNK, LONGEST_LINE, BoundedLines
from tisat.watch.text_stream import HeaderError, LineReader, watch_lines

CHANNELS = ("a", "b", "c")


def values(length, seed=3):
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(length)[:, None] / 9.0 + np.arange(3.0)) * [1.0, 10.0, 100.0] + rng.normal(size=(length, 3))


@pytest.fixture(scope="module")
def watch():
    train = tisat.Series(values(2000, seed=1), timestamps=60.0 * np.arange(2000), channels=CHANNELS)
    return Watch("ewma", budget="1/200 rows").fit(train)


def csv(rows, *, start=0.0, step=60.0, names=CHANNELS):
    order = [CHANNELS.index(name) for name in names]
    return [f"{start + step * t}," + ",".join(repr(row[c]) for c in order) for t, row in enumerate(rows.tolist())]


def judged(monitor, lines, **options):
    raw, said = [line if isinstance(line, bytes) else line.encode() + b"\n" for line in lines], []
    with tempfile.TemporaryFile() as out:
        watch_lines(monitor, raw, out, report=said.append, **options)
        out.seek(0)
        return [json.loads(line) for line in out], said


# ------------------------------------------------------------------ headers in the middle


def test_a_header_in_mid_stream_says_what_the_columns_are_from_there_on(watch):
    rows = values(200)
    plain, _ = judged(watch.monitor(), ["time,a,b,c", *csv(rows)])
    rotated = csv(rows[100:], start=6000.0, names=("c", "a", "b"))
    found, said = judged(watch.monitor(), ["time,a,b,c", *csv(rows[:100]), "time,c,a,b", *rotated])
    assert [one["score"] for one in found] == [one["score"] for one in plain]
    assert said == []
    found, _ = judged(watch.monitor(), [*csv(rows[:100]), "time,c,a,b", "s,m,m,m", *rotated])  # no header at first
    assert [one["score"] for one in found] == [one["score"] for one in plain]


def test_a_header_in_mid_stream_that_does_not_fit_ends_the_watch(watch):
    with pytest.raises(HeaderError, match="Missing: b"):
        judged(watch.monitor(), ["time,a,b,c", *csv(values(50)), "time,a,x,c", *csv(values(50), start=3000.0)])


def test_a_header_taken_in_mid_stream_is_kept_in_the_state(watch, tmp_path):
    lines = ["time,a,b,c", *csv(values(50)), "time,c,a,b"]
    judged(watch.monitor(), lines, state=tmp_path / "s")
    from tisat.watch import Monitor

    assert Monitor.load_with_note(watch, tmp_path / "s")[1]["header"] == ["time", "c", "a", "b"]


# ------------------------------------------------------------------ clocks


def statuses(monitor, times):
    return [monitor.update(row, time=time).status for row, time in zip(values(len(times)), times, strict=True)]


def test_two_rows_from_the_future_do_not_blind(watch):
    future = 4e9
    times = [*(60.0 * t for t in range(100)), future, future + 60, *(60.0 * t for t in range(100, 300))]
    monitor = watch.monitor()
    found = statuses(monitor, times)
    assert found[100] == "unconfirmed"
    assert found[102:].count("late") == 19
    assert found[125:] == ["ok"] * len(found[125:])


def test_a_clock_set_back_begins_anew_and_that_is_said(watch):
    start = 86_400.0 * 500
    lines = ["time,a,b,c", *csv(values(300), start=start), *csv(values(300), start=start - 86_400.0 * 400)]
    found, said = judged(watch.monitor(), lines)
    assert [one["status"] for one in found[300:]].count("late") == 19
    assert [one for one in said if "was set back" in one] == [
        f"line {300 + 21}: the clock of the rows was set back from {start + 299 * 60} to {start - 86_400.0 * 400 + 19 * 60}: "
        "rows that came late agree with one another, and are scored from here on"
    ]


def test_rows_sent_again_are_late_and_start_no_clock(watch):
    times = [60.0 * t for t in range(400)]
    found = statuses(watch.monitor(), [*times, *times[100:], *(60.0 * t for t in range(400, 450))])
    assert found[400:700] == ["late"] * 299 + ["duplicate"]
    assert found[700:] == ["ok"] * 50


def test_late_rows_that_do_not_agree_start_no_clock(watch):
    rng = np.random.default_rng(0)
    wild = (-1e9 * rng.random(200)).tolist()
    assert statuses(watch.monitor(), [0.0, 60.0, *wild])[2:] == ["late"] * 200


def test_a_clock_set_back_within_times_seen_does_not_blind_for_ever(watch):
    times = [60.0 * t for t in range(3000)]
    found = statuses(watch.monitor(), [*times, *(30.0 + 60.0 * t for t in range(1100))])
    assert found[3000:].count("late") == 999


@pytest.mark.parametrize(("first", "second"), [(60.0, 1.0), (60.0, 3600.0), (1.0, 60.0), (3600.0, 3600.0)])
def test_another_pace_is_noticed_at_any_time(watch, tmp_path, first, second):
    head = csv(values(150), step=first) if first == 60.0 else csv(values(20), step=first)
    rest = csv(values(100 if second < 3600 else 60), start=150 * 3600.0, step=second)
    monitor = watch.monitor()
    if first == 1.0:  # a burst too short to be a pace
        assert len(judged(monitor, ["time,a,b,c", *head[:10], *rest])[0]) == 110
        return
    with pytest.raises(SeriesError, match="must come every 60 seconds"):
        judged(monitor, ["time,a,b,c", *head, *rest], state=tmp_path / "s")
    assert (tmp_path / "s").is_file(), "a restart continues behind these rows"


def test_rows_that_are_each_far_ahead_are_told(watch):
    _, said = judged(watch.monitor(), ["time,a,b,c", *csv(values(60), step=86_400.0)])
    assert [one for one in said if "too far ahead" in one]


def test_a_row_without_a_time_among_rows_with_times_is_refused(watch):
    found, said = judged(watch.monitor(), ["time,a,b,c", *csv(values(5)), "{}", ",1,2,3", "360,1,2,3"])
    assert [one["status"] for one in found[5:]] == ["refused", "refused", "ok"]
    assert "must have a time" in said[0]


# ------------------------------------------------------------------ lines and encodings


def test_a_line_without_end_is_refused_after_a_bounded_read():
    class Endless(io.RawIOBase):
        read_so_far = 0

        def read1(self, limit=-1):
            assert 0 < limit <= CHUNK
            self.read_so_far += limit
            return b"x" * limit

    stream = Endless()
    first = next(BoundedLines(stream))
    assert LONGEST_LINE < len(first) <= LONGEST_LINE + 2
    assert stream.read_so_far <= LONGEST_LINE + CHUNK


def test_carriage_returns_alone_are_one_sentence(watch):
    with pytest.raises(SeriesError, match="carriage returns alone"):
        judged(watch.monitor(), [("time,a,b,c\r" + "\r".join(csv(values(5)))).encode()])


def test_bytes_of_another_encoding_do_not_matter_in_a_column_that_is_not_used(watch):
    reader = LineReader(CHANNELS, how=Reading(drop=["state"]))
    rows = [f"{60 * t},1,2,3,St\xf6rung\n".encode("cp1252") for t in range(3)]
    found, _ = judged(
        watch.monitor(), [b"time,a,b,c,state\n", *rows, "180,1,2,\xf6,x\n".encode("cp1252")], reader=reader
    )
    assert [one["status"] for one in found][1:] == ["ok", "ok", "refused"]


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert (stopped.value.code or 0) == code


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    text = "time,K\xfche,b,c,state\n" + "".join(f"{line},l\xe4uft\n" for line in csv(values(1500, seed=1)))
    (folder / "train.csv").write_bytes(text.encode("cp1252"))
    run(
        "fit",
        folder / "train.csv",
        "--detector",
        "ewma",
        "--drop",
        "state",
        "--budget",
        "1/200 rows",
        "--out",
        folder / "m",
    )
    return folder / "m"


def test_the_encoding_of_the_training_files_holds_for_watch(model, tmp_path, monkeypatch, capsys):
    text = "time,K\xfche,b,c,state\n" + "".join(f"{line},St\xf6rung\n" for line in csv(values(80)))
    monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": io.BytesIO(text.encode("cp1252"))}))
    kept = [(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    try:
        run("watch", "--model", model, "--output", tmp_path / "out")
    finally:
        for one, handler in kept:
            signal.signal(one, handler)
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert {one["status"] for one in found} <= {"ok", "warming up"}
    assert len(found) == 80


@pytest.mark.parametrize("encoding", ["rot13", "base64", "idna", "punycode", "hex", "no-such"])
def test_what_is_no_encoding_of_text_is_one_sentence(tmp_path, capsys, encoding):
    (tmp_path / "f.csv").write_text("time,a\n0,1\n60,2\n")
    run("fit", tmp_path / "f.csv", "--encoding", encoding, "--out", tmp_path / "m", code=1)
    assert "--encoding must be one such as" in capsys.readouterr().err


# ------------------------------------------------------------------ exit codes and signals


def test_most_rows_late_is_no_success(model, tmp_path, monkeypatch, capsys):
    rows = csv(values(200))
    text = "time,K\xfche,b,c,state\n" + "".join(f"{line},x\n" for line in [*rows[:60], *rows[:59], *rows[:59]])
    monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": io.BytesIO(text.encode("cp1252"))}))
    kept = [(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    try:
        run("watch", "--model", model, "--output", tmp_path / "out", code=1)
    finally:
        for one, handler in kept:
            signal.signal(one, handler)
    assert "Most rows came late" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_the_state_and_is_the_exit_code(model, tmp_path, number, code):
    command = [sys.executable, "-m", "tisat", "watch", "--model", str(model), "--state", str(tmp_path / "s"), "--live"]
    process = subprocess.Popen(
        [*command, "--output", str(tmp_path / "out")], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    text = "time,K\xfche,b,c,state\n" + "".join(f"{line},x\n" for line in csv(values(40)))
    process.stdin.write(text.encode("cp1252"))
    process.stdin.flush()
    end = time.monotonic() + 120
    while not (tmp_path / "out").exists() or (tmp_path / "out").read_bytes().count(b"\n") < 40:
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == code
    from tisat.watch import Monitor

    assert Monitor.load_with_note(Watch.load(model), tmp_path / "s")[1]["lines"] == 41
