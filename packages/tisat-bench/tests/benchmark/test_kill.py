"""kill -9 at any moment loses the task in flight and nothing else, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tisat_bench.store import Store

SMOKE = Path(__file__).parents[4] / "experiments" / "smoke.toml"


def start(store: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tisat", "bench", str(SMOKE), "--store", str(store), "--jobs", "1", *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def wait_for_rows(store: Path, number: int, process: subprocess.Popen[bytes]) -> None:
    while len(Store(store).rows()) < number:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.01)


def group_is_empty(group: int) -> bool:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    victim = start(tmp_path / "killed")
    wait_for_rows(tmp_path / "killed", 3, victim)
    os.kill(victim.pid, signal.SIGKILL)  # the driver alone: its worker must notice by itself
    victim.wait()
    deadline = time.monotonic() + 30
    while not group_is_empty(victim.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert group_is_empty(victim.pid), "the worker left with its driver"
    victim.communicate()  # nobody holds the other end of its pipes any more

    kept = Store(tmp_path / "killed").rows()
    assert len(kept) >= 3
    for identifier in kept:
        assert Store(tmp_path / "killed").arrays(identifier)  # every row has its whole arrays

    resumed, whole = start(tmp_path / "killed"), start(tmp_path / "whole")
    said = {name: process.communicate() for name, process in (("resumed", resumed), ("whole", whole))}
    assert resumed.returncode == whole.returncode == 0, said
    log = (tmp_path / "killed" / "rows.jsonl").read_bytes()
    assert log.count(b'"status": "done"') == len(Store(tmp_path / "whole").rows()), "nothing was run twice"
    assert said["resumed"][0].partition(b"Cost")[0] == said["whole"][0].partition(b"Cost")[0]
    for identifier in Store(tmp_path / "whole").rows():
        one, other = (Store(tmp_path / name).arrays(identifier) for name in ("killed", "whole"))
        assert all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


@pytest.mark.slow
def test_control_c_stops_cleanly_with_a_summary(tmp_path):
    process = start(tmp_path)
    wait_for_rows(tmp_path, 1, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"tasks done" in said
    assert b"run the same command to go on" in said
    assert b"Traceback" not in said
