"""The guides of CONTRIBUTING.md pasted into a copy of the tree under the names they print, and used from the command line."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tisat
from tisat.errors import ArtefactError
from tisat.watch import Watch

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(
    re.findall(
        r"`packages/tisat/src/tisat/((?:detectors|alarms)/[\w/]+\.py)`[^\n]*:\n\n```py\n(.*?)```", TEXT, flags=re.S
    )
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package with the detector and the rule of the guides in their places."""
    folder = tmp_path_factory.mktemp("tree")
    package = folder / "tisat"
    shutil.copytree(Path(tisat.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "static"))
    for name in ("detectors/distance.py", "alarms/rules/logarithm.py"):
        (package / name).write_text(FILES[name])
    registry = package / "registry.py"
    first = re.search(r"^DETECTORS\b[^\n]*\{\n", registry.read_text(), flags=re.M)
    line = '    "distance": "tisat.detectors.distance:Distance",\n'
    registry.write_text(registry.read_text().replace(first[0], first[0] + line))
    rules = package / "alarms" / "rules" / "__init__.py"
    line = "from tisat.alarms.rules.logarithm import LogarithmRule as LogarithmRule\nfrom tisat.alarms.rules.paper"
    rules.write_text(rules.read_text().replace("from tisat.alarms.rules.paper", line))
    rng = np.random.default_rng(0)
    for name, rows in (("week", 2000), ("now", 400)):
        values = rng.normal(size=(rows, 2))
        values[-5:] += 30.0 * (name == "now")
        lines = [f"{60 * t},{a!r},{b!r}" for t, (a, b) in enumerate(values.tolist())]
        (folder / f"{name}.csv").write_text("\n".join(["time,a,b", *lines]) + "\n")
    return folder


def run(folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "tisat", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-1500:]
    return done.stdout


def test_detector_and_rule_work_from_fit_to_alarm(tree):
    run(
        tree,
        "fit",
        "week.csv",
        "--out",
        "m.tisat",
        "--detector",
        "distance",
        "--rule",
        "logarithm",
        "--budget",
        "1/200 rows",
    )
    found = json.loads(run(tree, "alarm", "now.csv", "--model", "m.tisat", "--json"))
    assert [one["rule"] for one in found["alarms"]] == ["logarithm"] * len(found["alarms"])
    assert any(one["raised"] >= 395 for one in found["alarms"])


def test_save_refuses_what_load_would_refuse(tmp_path):
    fitted = tisat.registry.resolve("pca")().fit(np.random.default_rng(0).normal(size=(400, 2)))
    fitted.extra_ = np.zeros(3)  # learned, and declared nowhere
    for one in (fitted, Watch(fitted, budget="1/50 rows").calibrate()):
        with pytest.raises(ArtefactError, match="extra_"):
            one.save(tmp_path / "m.tisat")
    assert list(tmp_path.iterdir()) == []


def test_the_modules_do_without_what_not_every_system_has():
    code = "import sys; sys.modules['resource'] = None; import tisat_bench.task_run, tisat_serve.views.prometheus"
    environment = {**os.environ, "PYTHONPATH": str(Path(tisat.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
