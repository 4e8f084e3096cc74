"""A mutant that is put into a loop changes what the loop does, and what loops that call it do."""

import importlib.util
import sys

import numpy as np
import pytest
from numba.core import dispatcher

import mutating
import placing

LOOPS = """
from tisat.utils.compiled import compile_for, compiled

@compiled()
def _one(value):
    return value + 1.0

@compiled()
def of_many(values):
    found = 0.0
    for value in values:
        found += _one(value)
    return found

def _of_two(a, b):
    return _one(a) + _one(b)

of_two = compile_for("float64(float64, float64)", _of_two)
"""


def imported(file, monkeypatch):
    spec = importlib.util.spec_from_file_location("loops", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "loops", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kept", ["in memory", "on disk"])
def test_a_constant_of_a_loop_is_changed_in_all_that_call_it(tmp_path, monkeypatch, kept):
    for module in (mutating, placing):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(dispatcher.Dispatcher, "enable_caching", dispatcher.Dispatcher.enable_caching)
    file = tmp_path / "loops.py"
    file.write_text(LOOPS)
    module = imported(file, monkeypatch)
    assert (module.of_many(np.ones(3)), module.of_two(1.0, 1.0)) == (6.0, 4.0)
    if kept == "on disk":
        module = imported(file, monkeypatch)
    loops = [module._one, module.of_many, module.of_two]
    (mutant,) = (each for each in mutating.mutants_of(file) if (each.function, each.now) == ("_one", "2.0"))
    assert mutant.compiled
    assert placing.place(mutant, tmp_path, [each.py_func for each in loops], loops)
    assert (module.of_many(np.ones(3)), module.of_two(1.0, 1.0)) == (9.0, 6.0)
    again = imported(file, monkeypatch)
    assert (again.of_many(np.ones(3)), again.of_two(1.0, 1.0)) == (6.0, 4.0)  # what is kept on disk is what was there
