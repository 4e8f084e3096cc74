"""What CONTRIBUTING.md tells to paste is pasted, run, and held to the tools."""

import json
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from tisat import registry
from tisat.checks import check_detector
from tisat.datasets.cards import card_of
from tisat.errors import DataFileError

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r"`((?:src|tests)/[\w/]+\.(?:py|json))`[^\n]*:\n\n```(?:py|json)\n(.*?)```", TEXT, flags=re.S))


def module(path, name, monkeypatch):
    made = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(FILES[path], path, "exec"), made.__dict__)
    return made


def test_the_guide_has_a_file_for_everything_one_can_add():
    assert list(FILES) == [
        "src/tisat/detectors/distance.py",
        "src/tisat/nn/squeeze.py",
        "src/tisat/detectors/squeeze.py",
        "src/tisat/sequential/rules/logarithm.py",
        "src/tisat/metrics/alarm_load.py",
        "tests/metrics/test_alarm_load.py",
        "src/tisat/datasets/published/mill.json",
        "src/tisat/datasets/mill.py",
    ]


# The detector goes through every law in tests/contract/test_detectors.py, the rule through every door in test_toy_rule.py.


def test_the_neural_detector_passes_every_law(monkeypatch):
    pytest.importorskip("torch")
    module("src/tisat/nn/squeeze.py", "tisat.nn.squeeze", monkeypatch)
    made = module("src/tisat/detectors/squeeze.py", "tisat.detectors.squeeze", monkeypatch)
    monkeypatch.setitem(registry.DETECTORS, "squeeze", "tisat.detectors.squeeze:Squeeze")  # the line in registry.py
    check_detector(made.Squeeze)


def test_the_metric_is_its_slow_twins(monkeypatch):
    module("src/tisat/metrics/alarm_load.py", "tisat.metrics.alarm_load", monkeypatch)
    tests = module("tests/metrics/test_alarm_load.py", "test_alarm_load", monkeypatch)
    found = [value for name, value in vars(tests).items() if name.startswith("test_")]
    assert len(found) == 2
    for one in found:
        one()


@pytest.fixture
def mill(tmp_path, monkeypatch):
    loader = module("src/tisat/datasets/mill.py", "tisat.datasets.mill", monkeypatch)
    card = card_of(json.loads(FILES["src/tisat/datasets/published/mill.json"]))
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
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
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
    types = run(pasted, "mypy", "src")
    assert types.returncode == 0, types.stdout + types.stderr
    monkeypatch.setenv("PYTHONPATH", str(pasted / "src"))
    layers = run(pasted, "lint-imports")
    assert layers.returncode == 0, layers.stdout + layers.stderr
