"""What every test stands on.

One thread a process: networks this small only lose by more, and by a factor of ten when the machine is busy. And no test passes
or fails by the clock: hypothesis neither has a deadline nor calls a busy machine an error. ``TISAT_HYPOTHESIS=slow`` asks for a
thousand examples where a test does not say how many, ``repeatable`` for the same ones each time, to the first that fails.
"""

import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, Phase, settings  # noqa: E402

plain = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("tisat", plain)
settings.register_profile("slow", plain, max_examples=1000)
settings.register_profile(
    "repeatable",
    plain,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("TISAT_HYPOTHESIS", "tisat"))


def pytest_configure(config: pytest.Config) -> None:
    """Data sets of the user's are none of the tests' business, but for those that are asked for with ``-m data``."""
    if re.search(r"(?<!not )\bdata\b", str(config.getoption("markexpr", default=""))):
        return
    empty = tempfile.mkdtemp(prefix="tisat-no-data-")
    os.environ["TISAT_DATA"] = empty
    config.add_cleanup(lambda: shutil.rmtree(empty, ignore_errors=True))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], io.StringIO]:
    """Standard error becomes a terminal when this is called; what it shows."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def open_terminal() -> io.StringIO:
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "200")
        return screen

    return open_terminal
