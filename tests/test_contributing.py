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
FILES = dict(
    re.findall(r"(?<!\()`(packages/[\w/-]+\.(?:py|json))`[^\n]*:\n\n```(?:py|json)\n(.*?)```", TEXT, flags=re.S)
)


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
        "packages/tisat-serve/src/tisat_serve/sources/line_file.py",
        "packages/tisat-serve/src/tisat_serve/sinks/alarm_file.py",
        "packages/tisat/src/tisat/cli/count.py",
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


def write_mill(folder):
    """Write the files of the data set as their publisher would."""
    rng = np.random.default_rng(0)
    for split, rows in (("train", 60), ("test", 40)):
        stamps = np.datetime64("2026-01-01T00:00") + np.arange(rows)
        labels = [f",{int(20 <= t < 25)}" if split == "test" else "" for t in range(rows)]
        lines = [f"{stamps[t]},{a:.3f},{b:.3f}{labels[t]}" for t, (a, b) in enumerate(rng.normal(size=(rows, 2)))]
        head = "time,power,load" + ",fault" * (split == "test")
        (folder / f"{split}.csv").write_text("\n".join([head, *lines]) + "\n")


@pytest.fixture
def mill(tmp_path, monkeypatch):
    loader = module("packages/tisat-bench/src/tisat_bench/datasets/mill.py", "tisat_bench.datasets.mill", monkeypatch)
    card = card_of(json.loads(FILES["packages/tisat-bench/src/tisat_bench/datasets/published/mill.json"]))
    write_mill(tmp_path)
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


LINES = re.findall(r"line in `(\w+)` \(`(packages/[\w/-]+\.py)`\):\n\n```py\n(.*?)```", TEXT, flags=re.S)


def insert(file, before, text):
    """Put text before the first place that an expression finds."""
    whole = file.read_text()
    place = re.search(before, whole, flags=re.M).start()
    file.write_text(whole[:place] + text + whole[place:])


@pytest.fixture(scope="module")
def pasted(tmp_path_factory):
    """A copy of the tree with every file of the guides in its place, and every line that they tell to add."""
    folder = tmp_path_factory.mktemp("pasted")
    for package in (ROOT / "packages").iterdir():
        where = Path("packages") / package.name / "src"
        shutil.copytree(ROOT / where, folder / where, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for table, path, block in LINES:
        for line in block.splitlines(keepends=True):
            before = r"^from tisat"
            if not line.startswith("from "):
                head = re.search(rf"^{table}\b[^\n]*[\[{{]\n", (folder / path).read_text(), flags=re.M)[0]
                before = f"(?<={re.escape(head)})"
            insert(folder / path, before, line)
    sets = folder / "packages/tisat-bench/src/tisat_bench/datasets"
    insert(sets / "cards.py", r'(?<=^NAMES = \()"', '"mill", ')
    insert(sets / "loading.py", r'(?<=ModuleType\] = \{)"', '"mill": mill, ')
    insert(sets / "loading.py", r"^from tisat_bench", "from tisat_bench.datasets import mill\n")
    return folder


def python(folder, *words):
    """Run Python in the copy; what it prints."""
    sources = os.pathsep.join(map(str, sorted((folder / "packages").glob("*/src"))))
    environment = {**os.environ, "PYTHONPATH": sources, "TISAT_DATA": str(folder / "data")}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1500:]
    return done.stdout


def test_metric_data_set_and_verb_are_there_where_the_guides_put_them(pasted):
    assert [table for table, _, _ in LINES] == ["__all__", "SOURCES", "SINKS", "VERBS"]
    code = (
        "from tisat.metrics import alarm_load; from tisat_bench.datasets import load; "
        "print(alarm_load([0, 0, 0, 1, 1], [1, 0, 0, 1, 0], delta_max=2), load('mill', '.')['mill'].test.events.tolist())"
    )
    (pasted / "mill").mkdir()
    write_mill(pasted / "mill")
    assert python(pasted, "-c", code) == "2.0 [[20, 25]]\n"
    rows = "\n".join(["time,a,b", *(f"{60 * t},{t % 7},{t % 3}" for t in range(50))])
    (pasted / "week.csv").write_text(rows + "\n")
    found = json.loads(python(pasted, "-m", "tisat", "count", "week.csv", "--json"))
    assert found == [{"machine": "week", "rows": 50, "channels": 2}]
    assert "Count the rows" in python(pasted, "-m", "tisat", "--help")


SERVED = """
import json, sys, time, warnings
from pathlib import Path
import numpy as np
from tisat import Watch
from tisat_serve.config import groups_of, parts_of, read_config
from tisat_serve.runner import running

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
if not Path("m.tisat").exists():
    Watch("last-value", budget="1/500 rows", period=60.0).fit(rng.normal(size=(3000, 2))).save("m.tisat")
config = read_config(Path("serve.toml"))
parts, routes = parts_of(config)
first, last = map(int, sys.argv[1:])
with open("rows.jsonl", "a") as file:
    for t, values in enumerate(rng.normal(size=(last - first, 2)) + 40.0 * (last == 300), first):
        print(json.dumps({"entity": "pump", "time": 1.7e9 + 60 * t, "values": values.tolist()}), file=file)
    print("no row", file=file)
source = next(part for part in parts if part.name == "in")
until = time.monotonic() + 20
with running(Path(config.data), groups_of(config), parts=parts, routes=routes):
    while source.rows < last - first or (last == 300 and not Path("out.jsonl").exists()):
        assert time.monotonic() < until, (source.rows, source.error)
        time.sleep(0.05)
print(source.rows, source.refused)
"""


def test_source_and_sink_run_in_a_service_and_go_on_after_a_restart(pasted):
    (pasted / "serve.toml").write_text(
        'data = "served"\n[[group]]\nname = "main"\nmodel = "m.tisat"\n[[source]]\nkind = "lines"\nname = "in"\nurl = "rows.jsonl"\n'
        '[[sink]]\nkind = "file"\nname = "out"\nurl = "out.jsonl"\n'
    )
    (pasted / "served.py").write_text(SERVED)
    assert python(pasted, "served.py", "0", "280") == "280 1\n"
    assert python(pasted, "served.py", "280", "300") == "20 1\n", "no line is read twice"
    told = [json.loads(line) for line in (pasted / "out.jsonl").read_text().splitlines()]
    assert {one["entity"] for one in told} == {"pump"}
    assert told[0]["event"] == "raised"


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
