"""Every example and every notebook runs and says something."""

import importlib.util
import json
import runpy
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
    said = capsys.readouterr().out.strip()
    assert said
    assert "found: False" not in said, "an example shows what is found; what is not belongs on a page that says why"


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def load(name):
    spec = importlib.util.spec_from_file_location(f"examples_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_there_are_four_notebooks_and_their_cells_are_those_of_the_script():
    known = load("notebooks").NOTEBOOKS
    assert [file.stem for file in NOTEBOOKS] == list(known)
    for file in NOTEBOOKS:
        cells = json.loads(file.read_text())["cells"]
        assert ["".join(cell["source"]) for cell in cells] == list(known[file.stem])


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_shows_what_it_says(file, tmp_path):
    blocks, notebooks = load("blocks"), load("notebooks")
    cells = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
    shown = notebooks.run_cells(["".join(cell["source"]) for cell in cells], tmp_path)
    for cell, outputs in zip(cells, shown, strict=True):
        assert [one["output_type"] for one in outputs] == [one["output_type"] for one in cell["outputs"]]
        for there, here in zip(cell["outputs"], outputs, strict=True):
            assert blocks.same_text(text_of(there), text_of(here)), "type: python docs/notebooks.py"


def text_of(output):
    return "".join(output["text"] if "text" in output else output["data"]["text/plain"])
