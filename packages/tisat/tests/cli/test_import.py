"""Detectors of one's own: --import module:Class in any verb, TISAT_IMPORT for child processes, entry points of installed packages."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from tisat import registry
from tisat.cli import main
from tisat.errors import ParameterError

OWN = '''
import numpy as np
from tisat import Detector

class FarOff(Detector):
    """Distance from the mean, of one's own."""

    def _fit(self, parts):
        rows = np.concatenate(parts)
        self.mean_, self.spread_ = rows.mean(axis=0), rows.std(axis=0) + 1e-9

    def _points(self, part):
        return np.abs((part - self.mean_) / self.spread_).max(axis=1, keepdims=True)

    def _context(self):
        return 0

NotOne = dict
'''


def run(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tisat", *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture
def here(folder, monkeypatch, capsys):
    """Run a command in the folder, in this process, which then knows nothing of what was imported."""
    known = dict(registry.DETECTORS)
    monkeypatch.chdir(folder)
    monkeypatch.setenv(registry.IMPORTS, "")
    monkeypatch.setattr(sys, "path", [*sys.path])

    def forget():
        registry.DETECTORS.clear()
        registry.DETECTORS.update(known)
        sys.modules.pop("mine", None)

    def one(*arguments):
        forget()
        monkeypatch.setenv(registry.IMPORTS, "")
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, printed.err

    yield one
    forget()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("own")
    (root / "mine.py").write_text(OWN)
    rows = np.random.default_rng(0).normal(size=(1500, 2))
    lines = [",".join(f"{value:.4f}" for value in row) for row in rows]
    (root / "week.csv").write_text("a,b\n" + "\n".join(lines) + "\n")
    lines[700] = "30.0,30.0"
    (root / "new.csv").write_text("a,b\n" + "\n".join(lines) + "\n")
    return root


def test_fit_and_alarm_with_a_detector_of_ones_own(folder, here):
    own = ("--import", "mine:FarOff")
    model = ("--model", "m.tisat")
    code, out, err = here(
        "fit", *own, "--detector", "far-off", "--train", "week.csv", "--out", "m.tisat", "--budget", "1/500"
    )
    assert code == 0, err
    assert "FarOff()" in out
    code, out, err = here("alarm", "new.csv", *model, "--json", *own)
    assert code == 0, err
    assert 700 in [alarm["raised"] for alarm in json.loads(out)["alarms"]]
    code, _, err = here("alarm", "new.csv", *model)
    assert code == 1
    assert "--import module:Class" in err
    by_environment = run(
        folder,
        "show",
        "m.tisat",
        TISAT_IMPORT="mine:FarOff",
        PYTHONPATH=f"{folder}:{os.environ['PYTHONPATH']}" if os.environ.get("PYTHONPATH") else str(folder),
    )
    assert by_environment.returncode == 0, by_environment.stderr
    assert run(folder, "detectors", *own).returncode == 0  # a process of its own finds what is in its folder


def test_what_is_no_detector_is_one_sentence(here):
    for target, said in (
        ("mine:NotOne", "derives from tisat.Detector"),
        ("mine:Nothing", "must have the class"),
        ("nowhere:X", "must be found"),
        ("mine", "module:Class"),
    ):
        code, _, err = here("detectors", "--import", target)
        assert code == 1
        assert said in err
        assert err.count("\n") == 1


def test_installed_packages_offer_detectors(monkeypatch):
    point = EntryPoint("random_baseline-of-mine", "tisat.detectors.random_guess:RandomGuess", registry.ENTRY_POINTS)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [point] if group == registry.ENTRY_POINTS else []
    )
    registry._look_outside.cache_clear()
    try:
        assert registry.resolve("random_baseline-of-mine").__name__ == "RandomGuess"
        assert "random_baseline-of-mine" in registry.names()
    finally:
        registry.DETECTORS.pop("random_baseline-of-mine", None)
        registry._look_outside.cache_clear()
    with pytest.raises(ParameterError, match="must be free"):
        registry.add("prism=tisat.detectors.random_guess:RandomGuess")
