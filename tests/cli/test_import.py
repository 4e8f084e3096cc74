"""Detectors of one's own: --import module:Class in any verb, TISAT_IMPORT for child processes, entry points of installed packages."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from tisat import registry
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


def test_fit_and_alarm_with_a_detector_of_ones_own(folder):
    own = ("--import", "mine:FarOff")
    fitted = run(
        folder, "fit", *own, "--detector", "far-off", "--train", "week.csv", "--out", "m.tisat", "--budget", "1/500"
    )
    assert fitted.returncode == 0, fitted.stderr
    assert "FarOff()" in fitted.stdout
    told = run(folder, "alarm", "new.csv", "--model", "m.tisat", "--json", *own)
    assert told.returncode == 0, told.stderr
    assert 700 in [alarm["raised"] for alarm in json.loads(told.stdout)["alarms"]]
    by_environment = run(
        folder,
        "show",
        "m.tisat",
        TISAT_IMPORT="mine:FarOff",
        PYTHONPATH=f"{folder}:{os.environ['PYTHONPATH']}" if os.environ.get("PYTHONPATH") else str(folder),
    )
    assert by_environment.returncode == 0, by_environment.stderr
    refused = run(folder, "alarm", "new.csv", "--model", "m.tisat")
    assert refused.returncode == 1
    assert "--import module:Class" in refused.stderr


def test_what_is_no_detector_is_one_sentence(folder):
    for target, said in (
        ("mine:NotOne", "derives from tisat.Detector"),
        ("mine:Nothing", "must have the class"),
        ("nowhere:X", "must be found"),
        ("mine", "module:Class"),
    ):
        found = run(folder, "detectors", "--import", target)
        assert found.returncode == 1
        assert said in found.stderr
        assert found.stderr.count("\n") == 1


def test_installed_packages_offer_detectors(monkeypatch):
    point = EntryPoint("coin-of-mine", "tisat.detectors.random_guess:RandomGuess", registry.ENTRY_POINTS)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [point] if group == registry.ENTRY_POINTS else []
    )
    registry._look_outside.cache_clear()
    try:
        assert registry.resolve("coin-of-mine").__name__ == "RandomGuess"
        assert "coin-of-mine" in registry.names()
    finally:
        registry.DETECTORS.pop("coin-of-mine", None)
        registry._look_outside.cache_clear()
    with pytest.raises(ParameterError, match="must be free"):
        registry.add("prism=tisat.detectors.random_guess:RandomGuess")
