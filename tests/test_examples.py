"""Every example runs and says something."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_eight():
    assert len(EXAMPLES) == 8


@pytest.mark.filterwarnings("ignore::tisat.errors.CalibrationWarning")  # said, and it goes on
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_it_runs(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(file), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_first_runs_in_a_process_of_its_own(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    file = ROOT / "examples" / "first_alarm.py"
    found = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False, timeout=600)  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip()
