"""Loops are compiled one way, also where nothing may be written."""

import numba
import numpy as np
import pytest

from tisat import Watch
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


def test_fitting_alarms_a_monitor_and_a_fleet_give_loops_contiguous_arrays():
    """Strided arrays would be another type, and each loop over them would be compiled again at first use."""
    from tisat.alarms import _kernels
    from tisat.detectors.prism import activity, fusion, line, relations, rhythm
    from tisat.utils import neighbors

    loops = (
        _kernels.excess, _kernels.window_sum, activity.mean_squares, fusion.fuse, line.line_forecasts, relations.filtered,
        rhythm.make_echoes, rhythm.echo_distances, neighbors._of_marked, neighbors._of_all,
    )  # fmt: skip
    before = {signature for loop in loops for signature in loop.signatures}  # of other tests
    rows = np.sin(np.arange(9000)[:, None] / [7.0, 11.0]) + 0.1 * np.random.default_rng(0).normal(size=(9000, 2))
    watch = Watch("prism", budget="1/1000 rows").fit(rows)
    watch.alarms(rows[:1000])
    monitor, fleet = watch.monitor(), watch.fleet(["a", "b"])
    for row in rows[:110]:
        monitor.update(row)
        fleet.update({"a": row, "b": row})
    made = {signature for loop in loops for signature in loop.signatures} - before
    assert {getattr(argument, "layout", "C") for signature in made for argument in signature} <= {"C"}
