"""Attacks on files of the user's: no verb replaces one unasked, and never what it reads."""

import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tisat.cli import main
from tisat.persistence.model_file import write_bytes

HEADER = "time,flow,pressure\n"


def lines(stop, seed=3):
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(stop)[:, None] / 9.0 + [0.0, 1.0]) + 0.1 * rng.standard_normal((stop, 2))
    return [f"{60 * t},{a!r},{b!r}\n" for t, (a, b) in enumerate(values.tolist())]


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert (stopped.value.code or 0) == code


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a model, and with rows and files that are expensive to the user."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "rows.csv").write_text(HEADER + "".join(lines(2000)))
    (folder / "now.csv").write_text(HEADER + "".join(lines(300, seed=4)))
    fit = ("fit", folder / "rows.csv", "--detector", "ewma", "--budget", "1/200 rows")
    run(*fit, "--out", folder / "m.tisat")
    run("alarm", folder / "now.csv", "--model", folder / "m.tisat", "--out", folder / "alarms.csv")
    (folder / "labels.csv").write_text("is_anomaly\n" + "0\n" * 250 + "1\n" * 50)
    run("score", folder / "now.csv", "--model", folder / "m.tisat", "--out", folder / "scores.csv")
    return folder


ROWS, NOW, MODEL, SCORES = "rows.csv", "now.csv", "m.tisat", "scores.csv"
WRITES = {  # verb -> its arguments, and the options that name outputs with the end their files must have
    "fit": (("fit", ROWS, "--detector", "ewma"), {"--out": ".tisat"}),
    "score": (("score", NOW, "--model", MODEL), {"--out": ".csv"}),
    "alarm": (("alarm", NOW, "--model", MODEL), {"--out": ".csv", "--picture": ".png", "--html": ".html"}),
    "update": (("update", "--model", MODEL, "--train", ROWS), {"--out": ".tisat"}),
    "recalibrate": (("recalibrate", "--model", MODEL, "--budget", "1/300 rows"), {"--out": ".tisat"}),
    "audit": (("audit", "labels.csv", SCORES), {"--html": ".html", "--latex": ".tex", "--csv": ".csv"}),
    "far": (("far", ROWS, "--detector", "ewma"), {"--page": ".html", "--picture": ".png"}),
}
CASES = [pytest.param(verb, option, id=f"{verb}:{option}") for verb, (_, ends) in WRITES.items() for option in ends]


def placed(verb, folder):
    return [folder / word if word.endswith((".csv", ".tisat")) else word for word in WRITES[verb][0]]


@pytest.mark.parametrize(("verb", "option"), CASES)
def test_a_file_that_is_there_stays_unless_overwrite_is_said(kept, tmp_path, capsys, verb, option):
    precious = tmp_path / f"precious{WRITES[verb][1][option]}"
    precious.write_text("expensive\n")
    run(*placed(verb, kept), option, precious, code=1)
    assert "--overwrite" in capsys.readouterr().err
    assert precious.read_text() == "expensive\n"
    if option == "--out":
        run(*placed(verb, kept), option, precious, "--overwrite")
        assert precious.read_bytes() != b"dear\n"


@pytest.mark.parametrize(("verb", "option"), CASES)
def test_what_is_read_is_never_written(kept, tmp_path, capsys, verb, option):
    for word in placed(verb, kept):
        if isinstance(word, str):
            continue
        before = word.read_bytes()
        link = tmp_path / f"{word.stem}{WRITES[verb][1][option]}"
        link.symlink_to(word)
        for target in (word, link):
            run(*placed(verb, kept), option, target, "--overwrite", code=1)
            assert "must not be a file that is read here" in capsys.readouterr().err
            assert word.read_bytes() == before
        link.unlink()


def watch(kept, *more, text=None, stdin=None):
    command = [sys.executable, "-m", "tisat", "watch", "--model", str(kept / "m.tisat"), *map(str, more)]
    given = {"stdin": stdin} if stdin else {"input": (text or HEADER + "".join(lines(60))).encode()}
    done = subprocess.run(command, capture_output=True, timeout=120, **given)
    return done.returncode, done.stderr.decode()


def test_watch_overwrites_nothing(kept, tmp_path, capsys, monkeypatch):
    """The table of the findings, row by row: input, other file, model, lost state, second run, state as output."""

    text = (HEADER + "".join(lines(60))).encode()

    def here(*more, code=0):
        monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": io.BytesIO(text)}))
        signals = [(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        try:
            run("watch", "--model", kept / "m.tisat", *more, code=code)
        finally:
            for one, handler in signals:
                signal.signal(one, handler)
        return capsys.readouterr().err

    precious = tmp_path / "precious.csv"
    precious.write_text("expensive\n")
    assert "--append" in here("--output", precious, code=1)
    assert precious.read_text() == "expensive\n"
    here("--output", precious, "--append")
    assert precious.read_text().startswith("expensive\n{")
    assert precious.read_text().count("\n") == 61
    here("--output", precious, "--overwrite")
    assert precious.read_text().count("\n") == 60
    model = (kept / "m.tisat").read_bytes()
    for option in ("--output", "--state"):
        assert "must not be a file that is read" in here(option, kept / "m.tisat", "--overwrite", code=1)
    assert (kept / "m.tisat").read_bytes() == model
    state, out = tmp_path / "s", tmp_path / "out.jsonl"
    assert "different files" in here("--output", out, "--state", out, code=1)
    assert "must be a file" in here("--state", tmp_path, code=1)
    here("--output", out, "--state", state)
    written = out.read_bytes()
    state.unlink()
    assert "where there is no state" in here("--output", out, "--state", state, code=1)
    assert out.read_bytes() == written
    assert "not both" in here("--output", out, "--append", "--overwrite", code=1)
    here("--output", os.devnull)
    here("--output", os.devnull, "--state", tmp_path / "another")


def test_watch_does_not_write_to_its_own_input(kept, tmp_path):
    rows = tmp_path / "in.csv"
    rows.write_text(HEADER + "".join(lines(60)))
    before = rows.read_bytes()
    for option in ("--output", "--state"):
        with rows.open("rb") as opened:
            code, said = watch(kept, option, rows, "--overwrite", stdin=opened)
        assert (code, rows.read_bytes()) == (1, before)
        assert "must not be a file that is read" in said


def test_a_device_is_written_to_and_a_link_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_bytes(pipe, b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_scores_appear_whole_or_not_at_all(kept, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tisat.persistence.model_file.os.fsync", full)
    for name in ("s.csv", "s.parquet"):
        run("score", kept / "now.csv", "--model", kept / "m.tisat", "--out", tmp_path / name, code=1)
        assert "No space left" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
