"""What CONTRIBUTING.md tells to paste is pasted, run, and held to the tools."""

import json
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from tisat import registry
from tisat.errors import DataFileError
from tisat.testing.contracts import check_detector
from tisat_bench.datasets.cards import card_of

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r"`(packages/[\w/-]+\.(?:py|json))`[^\n]*:\n\n```(?:py|json)\n(.*?)```", TEXT, flags=re.S))


def module(path, name, monkeypatch):
    made = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(FILES[path], path, "exec"), made.__dict__)
    return made


def test_the_guide_has_a_file_for_everything_one_can_add():
    assert list(FILES) == [
        "packages/tisat/src/tisat/detectors/distance.py",
        "packages/tisat/src/tisat/detectors/networks/squeeze.py",
        "packages/tisat/src/tisat/detectors/squeeze.py",
        "packages/tisat/src/tisat/alarms/rules/logarithm.py",
        "packages/tisat/src/tisat/metrics/alarm_load.py",
        "packages/tisat/tests/metrics/test_alarm_load.py",
        "packages/tisat-bench/src/tisat_bench/datasets/published/mill.json",
        "packages/tisat-bench/src/tisat_bench/datasets/mill.py",
    ]


# The detector goes through every contract test in packages/tisat/tests/contract/test_detectors.py, the rule through every door in test_toy_rule.py.


def test_the_neural_detector_passes_every_contract(monkeypatch):
    pytest.importorskip("torch")
    module("packages/tisat/src/tisat/detectors/networks/squeeze.py", "tisat.detectors.networks.squeeze", monkeypatch)
    made = module("packages/tisat/src/tisat/detectors/squeeze.py", "tisat.detectors.squeeze", monkeypatch)
    monkeypatch.setitem(registry.DETECTORS, "squeeze", "tisat.detectors.squeeze:Squeeze")  # the line in registry.py
    check_detector(made.Squeeze)


def test_the_metric_is_its_slow_twins(monkeypatch):
    module("packages/tisat/src/tisat/metrics/alarm_load.py", "tisat.metrics.alarm_load", monkeypatch)
    tests = module("packages/tisat/tests/metrics/test_alarm_load.py", "test_alarm_load", monkeypatch)
    found = [value for name, value in vars(tests).items() if name.startswith("test_")]
    assert len(found) == 2
    for one in found:
        one()


@pytest.fixture
def mill(tmp_path, monkeypatch):
    loader = module("packages/tisat-bench/src/tisat_bench/datasets/mill.py", "tisat_bench.datasets.mill", monkeypatch)
    card = card_of(json.loads(FILES["packages/tisat-bench/src/tisat_bench/datasets/published/mill.json"]))
    rng = np.random.default_rng(0)
    for split, rows in (("train", 60), ("test", 40)):
        stamps = np.datetime64("2026-01-01T00:00") + np.arange(rows)
        labels = [f",{int(20 <= t < 25)}" if split == "test" else "" for t in range(rows)]
        lines = [f"{stamps[t]},{a:.3f},{b:.3f}{labels[t]}" for t, (a, b) in enumerate(rng.normal(size=(rows, 2)))]
        head = "time,power,load" + ",fault" * (split == "test")
        (tmp_path / f"{split}.csv").write_text("\n".join([head, *lines]) + "\n")
    return loader, card, tmp_path


def test_the_data_set_is_read_and_its_damage_is_named(mill):
    loader, card, folder = mill
    entity = loader.dataset(folder, card, strict=True)["mill"]
    assert entity.train.values.shape == (60, 2)
    assert entity.test.events.tolist() == [[20, 25]]
    assert entity.test.labels.mean() * 100 == card.anomalous_percent
    whole = (folder / "test.csv").read_text()
    (folder / "test.csv").write_text("\n".join(whole.splitlines()[:30]) + "\n")
    with pytest.raises(DataFileError, match=r"test\.csv' must have the 40 rows its publisher gave it.*Got 29 rows"):
        assert loader.dataset(folder, card, strict=True)["mill"].test
    (folder / "test.csv").write_text(whole.replace("power", "current"))
    with pytest.raises(DataFileError, match=r"must have the channels power, load\. Got current, load"):
        assert loader.dataset(folder, card, strict=True)["mill"].test
    (folder / "train.csv").unlink()
    assert loader.dataset(folder, card, strict=True).missing == ("mill",)


@pytest.fixture
def pasted(tmp_path):
    for package in (ROOT / "packages").iterdir():
        where = Path("packages") / package.name / "src"
        shutil.copytree(ROOT / where, tmp_path / where, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def run(folder, *words):
    executable = shutil.which(words[0], path=str(Path(sys.executable).parent)) or shutil.which(words[0])
    if executable is None:
        pytest.skip(f"{words[0]} is not installed")
    return subprocess.run([executable, *words[1:]], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check"])
def test_what_is_pasted_passes_the_quick_tools(pasted, command):
    found = run(pasted, *command.split(), *(path for path in FILES if path.endswith(".py")))
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.slow
def test_what_is_pasted_passes_the_types_and_the_layers(pasted, monkeypatch):
    types = run(pasted, "mypy", *map(str, sorted((pasted / "packages").glob("*/src"))))
    assert types.returncode == 0, types.stdout + types.stderr
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (pasted / "packages").glob("*/src"))))
    layers = run(pasted, "lint-imports")
    assert layers.returncode == 0, layers.stdout + layers.stderr
