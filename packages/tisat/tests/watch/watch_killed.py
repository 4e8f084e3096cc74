"""Run ``tisat watch`` over a file and kill it with signal 9 again and again; then let it finish.

Usage: watch_killed.py MODEL INPUT STATE OUTPUT KILLS SEED. Every other time the process kills itself at a random row, and
in between it is killed from outside at a random moment, so also in the middle of writing its output or its state.
"""

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from tisat.alarms import calibrate, make_rule
from tisat.alarms.rules import Scored
from tisat.cli import main
from tisat.detectors.loading import load
from tisat.persistence.model_file import read_artefact


class Lines:
    """The input; kills the process before the line ``last``."""

    def __init__(self, path: str, last: int | None) -> None:
        self.path, self.last = path, last
        self.buffer = self  # as sys.stdin has it: the lines as bytes

    def readline(self, limit: int = -1) -> bytes:
        raise AssertionError("what has come is read at once")

    def read1(self, limit: int = -1) -> bytes:  # a few lines at a time, as from a pipe
        self.lines = getattr(self, "lines", None) or iter(self)
        return b"".join(islice(self.lines, 7))

    def __iter__(self) -> Iterator[bytes]:
        with open(self.path, "rb") as file:
            for number, line in enumerate(file):
                if number == self.last:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield line


def watch(model: str, source: str, state: str, output: str, last: int | None) -> None:
    lines: Any = Lines(source, last)
    sys.stdin = lines
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    main(["watch", "--model", model, "--budget", "1/50 rows", "--state", state, "--every", "10", "--output", output])


def seen(state: str) -> int:
    return int(read_artefact(state)[0]["note"]["lines"]) if os.path.exists(state) else 0


def child(arguments: tuple[str, str, str, str], last: int | None) -> int:
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(SystemExit):
            watch(*arguments, last)
        os._exit(0)
    return pid


def warm_up(model: str) -> None:
    """Load and compile what every child needs, once."""
    detector = load(model)
    detector.points(np.zeros((50, detector.n_channels_)))
    rule = make_rule("excess")
    calibrate(rule, np.random.default_rng(0).random(200), 0.02)
    rule.start(threshold=1.0).step(Scored.of([0.0]))


def run(model: str, source: str, state: str, output: str, kills: str, seed: str) -> None:
    warm_up(model)
    rng = random.Random(int(seed))
    arguments = (model, source, state, output)
    done = 0
    while done < int(kills):
        if done % 2 == 0:
            pid = child(arguments, seen(state) + rng.randrange(60))
        else:
            pid = child(arguments, None)
            time.sleep(rng.uniform(0.0, 0.05))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        done += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    print(done, seen(state))
    os.waitpid(child(arguments, None), 0)


if __name__ == "__main__":
    run(*sys.argv[1:])
