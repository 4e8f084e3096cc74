"""Loops are compiled one way, also where nothing may be written."""

import numba
import numpy as np
import pytest

from tisat.utils.compiled import compile_for, compiled


def total(values):
    found = 0.0
    for value in values:
        found += value
    return found


@pytest.mark.parametrize("decorate", [compiled(), compiled(reorder=True), lambda f: compile_for(None, f)])
def test_where_nothing_may_be_written_it_is_compiled_without_being_kept(monkeypatch, decorate):
    njit = numba.njit
    asked = []

    def without_a_folder(*signature, cache=False, **options):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function 'total': no locator available")
        return njit(*signature, **options)

    monkeypatch.setattr(numba, "njit", without_a_folder)
    values = np.arange(10.0)
    values.setflags(write=False)
    assert decorate(total)(values) == 45.0
    assert asked[:2] == [True, False]
