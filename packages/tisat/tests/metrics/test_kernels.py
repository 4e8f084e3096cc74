"""The compiled kernels: found where they may be written, and not compiled again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import naive
import tisat
from tisat.metrics import _kernels

PROGRAM = """
import time
from tisat.metrics import spd_score, _kernels
print(float(spd_score([0, 1, 1, 0], [0, 1, 0, 0], delta_max=1)))
stats = _kernels._compiled_false_alarms().stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""


def run(source, **environment):
    variables = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    variables.pop("NUMBA_CACHE_DIR", None) if "NUMBA_CACHE_DIR" not in environment else None
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=variables, check=True)
    value, stats = found.stdout.split("\n")[:2]
    hits, misses, where = stats.split(" ", 2)
    return float(value), int(hits), int(misses), where


@pytest.mark.slow
def test_a_second_process_compiles_nothing_even_from_a_read_only_installation(tmp_path):
    copy = tmp_path / "site"
    shutil.copytree(Path(tisat.__file__).parent, copy / "tisat", ignore=shutil.ignore_patterns("__pycache__"))
    (
        copy / "tisat" / "metrics" / "__pycache__"
    ).touch()  # a file where numba would make its folder: not even root can write there
    home = tmp_path / "home"
    home.mkdir()
    first = run(copy, HOME=str(home), XDG_CACHE_HOME=str(home / ".cache"))
    second = run(copy, HOME=str(home), XDG_CACHE_HOME=str(home / ".cache"))
    assert first[0] == second[0] == 1.0
    assert (first[1], first[2]) == (0, 1)
    assert (second[1], second[2]) == (1, 0)
    assert second[3].startswith(str(home))


def test_without_any_cache_the_kernel_is_compiled_and_works(monkeypatch):
    import numba

    plain = numba.njit

    def no_locator(*arguments, **options):
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*arguments, **options)

    monkeypatch.setattr(numba, "njit", no_locator)
    _kernels._compiled.cache_clear()
    try:
        values, positions, owners = _kernels.window_records(
            np.array([1.0, 3.0, 2.0, 4.0]), np.array([0]), np.array([4])
        )
    finally:
        _kernels._compiled.cache_clear()
    assert (values.tolist(), positions.tolist(), owners.tolist()) == ([1.0, 3.0, 4.0], [0, 1, 3], [0, 0, 0])


def read_only(values):
    array = np.array(values)
    array.flags.writeable = False
    return array


def strided(values):
    return np.repeat(values, 2)[::2]


@pytest.mark.parametrize("given", [read_only, strided])
def test_read_only_and_strided_arrays_are_taken(given):
    scores, outside, values = given(np.arange(0.0, 20.0, 2.0)), given(np.ones(10, dtype=bool)), given([0.0, 9.0])
    following = given(np.minimum(np.arange(10) + 4, 10))
    assert _kernels.false_alarms(scores, outside, values, 4).tolist() == [3, 2]
    assert _kernels.false_alarms(scores, outside, values, following).tolist() == [3, 2]
    assert _kernels.expected_raises(following, outside, given([0.0, 1.0])).tolist() == [0.0, 3.0]
    found = _kernels.window_records(scores, given([0, 5]), given([2, 6]))
    assert [each.tolist() for each in found] == [[0.0, 2.0, 10.0], [0, 1, 5], [0, 0, 1]]
    assert _kernels.missed_weights(given([1, 0]), given([0, 1]), 2, 2).tolist() == [1.0, 0.0]


def test_false_alarms_are_counted_within_the_arrays():
    stairs = np.array([0.0, 1, 2, 3, 4, 4, 4, 3, 1, np.nan, 2, 4, 4, 4, 4, 0])  # as many open runs as there are levels
    outside, values = np.ones(16, dtype=bool), np.arange(5.0)
    loops = (_kernels._false_alarms, _kernels._false_alarms_irregular)
    for stride in (1, 2, 3, 16):
        for loop, again in zip(loops, (stride, np.minimum(np.arange(16) + stride, 16)), strict=True):
            steps = np.zeros(6, dtype=np.int64)
            loop(stairs, outside, values, again, steps)  # not compiled: a step outside an array is an error
            by_hand = [len(naive.raises(naive.active(stairs, value), stride)) for value in values]
            assert (
                np.cumsum(steps[:-1]).tolist()
                == by_hand
                == _kernels.false_alarms(stairs, outside, values, again).tolist()
            )


def test_importing_the_metrics_does_not_import_numba():
    program = (
        "import sys, tisat.metrics; print('numba' in sys.modules, 'torch' in sys.modules, 'matplotlib' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False", "False"]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_levels_survive_extreme_ranges(scale):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=500) * scale
    values = np.unique(rng.choice(scores, 40))
    found = _kernels.false_alarms(scores, np.ones(500, dtype=bool), values, 1)
    assert found.tolist() == [(scores >= value).sum() for value in values]  # stride 1: every active row is a raise
    wide = np.array([-1.7e308, 0.0, 1.7e308, 5e-324])
    assert _kernels.false_alarms(wide, np.ones(4, dtype=bool), np.sort(wide), 1).tolist() == [4, 3, 2, 1]
    between = np.array([-1.7e308, 1.65e308, 1.7e308])
    assert _kernels.false_alarms(between, np.ones(3, dtype=bool), between - [0, 1e307, 0], 1).tolist() == [3, 2, 1]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8])
def test_records_raises_and_weights_stay_within_the_arrays(length):
    rng = np.random.default_rng(length)
    scores, order, groups = rng.random(length), rng.permutation(length), np.arange(length)
    following = np.minimum(groups + 1 + rng.integers(0, 3, length), length)
    outside, p, first, end = rng.random(length) < 0.7, np.array([0.0, 0.3, 1.0]), np.array([0]), np.array([length])
    found = {  # not compiled, where a step outside an array is an error, and compiled
        "records": (_kernels._window_records(scores, first, end), _kernels.window_records(scores, first, end)),
        "raises": (
            [_kernels._expected_raises(following, outside, p)],
            [_kernels.expected_raises(following, outside, p)],
        ),
        "weights": [
            [loop(order, groups, length, length)] for loop in (_kernels._missed_weights, _kernels.missed_weights)
        ],
    }
    for plain, compiled in found.values():
        for each, other in zip(plain, compiled, strict=True):
            np.testing.assert_allclose(each, other)
