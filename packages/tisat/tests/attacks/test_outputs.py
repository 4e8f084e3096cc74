"""Attacks on files of the user's through ``tisat watch``, devices and links; every other output: tests/test_every_output.py."""

import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tisat.cli import main, output_files
from tisat.cli.output_files import check_outputs
from tisat.errors import InputError
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
    return folder


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


def test_links_are_the_files_they_lead_to(tmp_path):
    rows, link, other = tmp_path / "rows.csv", tmp_path / "link.csv", tmp_path / "other.csv"
    rows.write_text("a\n1\n")
    link.symlink_to(rows)
    with pytest.raises(InputError, match="--out must not be a file that is read"):
        check_outputs({"--out": link}, inputs=[rows], overwrite=True)
    with pytest.raises(InputError, match="--state and --out must be different"):
        check_outputs({"--out": rows, "--state": link}, overwrite=True)
    with pytest.raises(InputError, match="--state and --out must be different"):
        check_outputs({"--out": other, "--state": other})
    check_outputs({"--out": other, "--state": tmp_path / "state"}, inputs=[rows])


def test_each_file_of_a_fleet_is_looked_up_once(tmp_path, monkeypatch):
    looked_up = []
    monkeypatch.setattr(output_files, "_identity", lambda path: looked_up.append(path) or path)
    for number in range(50):
        (tmp_path / f"{number}.csv").write_text("a\n1\n")
    check_outputs({f"--out ({number})": tmp_path / "out" / str(number) for number in range(50)}, inputs=[tmp_path])
    assert len(looked_up) == 100
