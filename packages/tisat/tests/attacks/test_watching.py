"""The attacks on ``tisat watch`` and on what it keeps: restarts told otherwise, two watchers, rotated files, signals, torn lines."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tisat.cli import main
from tisat.persistence.model_file import LEFT_BEHIND, write_bytes

HEADER = "time,flow,pressure\n"


def lines(start, stop, seed=3):
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(stop)[:, None] / 9.0 + [0.0, 1.0]) + 0.1 * rng.standard_normal((stop, 2))
    return [f"{60 * t},{a!r},{b!r}\n" for t, (a, b) in enumerate(values.tolist())][start:]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "train.csv").write_text(HEADER + "".join(lines(0, 2000, seed=1)))
    run(
        "fit",
        "--train",
        folder / "train.csv",
        "--detector",
        "ewma",
        "--budget",
        "1/200 rows",
        "--out",
        folder / "m.tisat",
    )
    return folder / "m.tisat"


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert (stopped.value.code or 0) == code
    return stopped.value.code


@pytest.fixture
def watch(model, tmp_path, monkeypatch, capsys):
    """Run ``tisat watch`` on some text, keeping state and output in a folder; what it said."""

    def one(text, *more, code=0):
        monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": io.BytesIO(text.encode())}))
        kept = ("--state", tmp_path / "s", "--output", tmp_path / "out.jsonl")
        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        try:
            run("watch", "--model", model, *kept, *more, code=code)
        finally:
            signal.signal(signal.SIGINT, before[0])
            signal.signal(signal.SIGTERM, before[1])
        return capsys.readouterr().err

    return one


def verdicts(folder):
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


# ------------------------------------------------------------------ B1: told otherwise at a restart


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (("--budget", "1/5000 rows"), "--recalibrate"),
        (("--rule", "threshold"), "rule"),
        (("--name", "another"), "--name"),
    ],
)
def test_another_budget_rule_or_name_at_a_restart_is_refused(watch, tmp_path, told, said):
    watch(HEADER + "".join(lines(0, 60)))
    before = (tmp_path / "s").read_bytes(), (tmp_path / "out.jsonl").read_bytes()
    assert said in watch(HEADER + "".join(lines(0, 80)), *told, code=1)
    assert ((tmp_path / "s").read_bytes(), (tmp_path / "out.jsonl").read_bytes()) == before


def test_recalibrate_goes_on_at_the_new_threshold(watch, tmp_path):
    watch(HEADER + "".join(lines(0, 60)))
    watch(HEADER + "".join(lines(0, 80)), "--budget", "1/5000 rows", "--recalibrate")
    found = verdicts(tmp_path)
    assert len(found) == 80
    assert found[-1]["threshold"] > found[0]["threshold"]


# ------------------------------------------------------------------ B2, B4: processes


def start(model, folder, *more):
    command = [sys.executable, "-m", "tisat", "watch", "--model", str(model), "--state", str(folder / "s")]
    command += ["--output", str(folder / "out.jsonl"), "--every", "100000", *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.05)


def test_a_second_watcher_is_refused_and_a_signal_saves_the_state(model, tmp_path):
    first = start(model, tmp_path)
    first.stdin.write((HEADER + "".join(lines(0, 50))).encode())
    first.stdin.flush()
    wait_for(lambda: (tmp_path / "out.jsonl").exists() and (tmp_path / "out.jsonl").stat().st_size > 0)
    second = start(model, tmp_path)
    _, said = second.communicate(b"", timeout=120)
    assert second.returncode == 1
    assert b"one watcher at a time" in said
    wait_for(lambda: (tmp_path / "out.jsonl").read_bytes().count(b"\n") == 50)
    first.send_signal(signal.SIGTERM)
    _, said = first.communicate(timeout=120)
    assert first.returncode == 143, said.decode()[-1800:]
    assert (tmp_path / "s").is_file()
    third = start(model, tmp_path)
    _, said = third.communicate((HEADER + "".join(lines(0, 60))).encode(), timeout=120)
    assert third.returncode == 0
    assert b"going on after line 51" in said
    assert [one["row"] for one in verdicts(tmp_path)] == list(range(60))


# ------------------------------------------------------------------ B3, B5: files that moved, lines that are not whole


def test_an_output_that_was_rotated_away_is_refused(watch, tmp_path):
    watch(HEADER + "".join(lines(0, 60)))
    (tmp_path / "out.jsonl").rename(tmp_path / "out.jsonl.1")
    assert "rotated" in watch(HEADER + "".join(lines(0, 80)), code=1)
    assert not (tmp_path / "out.jsonl").exists() or b"\0" not in (tmp_path / "out.jsonl").read_bytes()


def test_an_input_that_was_rotated_away_is_refused(watch):
    watch(HEADER + "".join(lines(0, 60)))
    said = watch(HEADER + "".join(lines(60, 160)), code=1)
    assert "--live" in said


def test_a_last_line_without_its_newline_waits(watch, tmp_path):
    whole = lines(0, 40)
    torn = HEADER + "".join(whole)[:-6]
    watch(torn)
    assert len(verdicts(tmp_path)) == 39
    watch(HEADER + "".join(whole))
    found = verdicts(tmp_path)
    assert [one["row"] for one in found] == list(range(40))
    (tmp_path / "s").unlink()
    (tmp_path / "out.jsonl").unlink()
    watch(HEADER + "".join(whole))
    assert verdicts(tmp_path) == found


# ------------------------------------------------------------------ C: hardening


def test_files_honour_the_umask_and_what_killed_writers_left_is_swept(tmp_path):
    old, fresh = tmp_path / ".state.1.part", tmp_path / ".state.2.part"
    for left in (old, fresh):
        left.write_bytes(b"half")
    os.utime(old, times=(time.time() - 2 * LEFT_BEHIND,) * 2)
    before = os.umask(0o077)
    try:
        write_bytes(tmp_path / "state", b"whole")
    finally:
        os.umask(before)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
    assert not old.exists()
    assert fresh.exists()


def test_a_rename_is_made_to_last(tmp_path, monkeypatch):
    """The file is flushed before the rename and its folder after it."""
    done = []
    fsync, replace = os.fsync, os.replace

    def flush(handle):
        done.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        fsync(handle)

    def rename(*paths):
        done.append("rename")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", rename)
    write_bytes(tmp_path / "state", b"whole")
    assert done == ["file", "rename", "folder"]
