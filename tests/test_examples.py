"""Every example runs and says something."""

import runpy
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
    said = capsys.readouterr().out.strip()
    assert said
    assert "found: False" not in said, "an example shows what is found; what is not belongs on a page that says why"
