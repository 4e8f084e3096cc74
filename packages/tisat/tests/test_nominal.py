"""Normal points: each row by a model that has not seen it, in time order, with the joins known."""

import numpy as np
import pytest

from tisat import registry
from tisat.detectors import make
from tisat.detectors.crossfit import LEAST_STRETCH, MAX_POINTS, blocks, join, split_tail, spread_stretches
from tisat.errors import SeriesError
from tisat.series import Series

ROWS = np.random.default_rng(0).normal(size=(400, 2)).cumsum(axis=0)
CHEAP = [name for name, cls in registry.DETECTORS.items() if registry.resolve(name).traits.crossfit > 1]


@pytest.mark.parametrize("context", [0, 3, None])
@pytest.mark.parametrize("lengths", [[100], [40, 60], [7, 90, 3]])
def test_blocks_are_contiguous_disjoint_and_everything(lengths, context):
    parts = [np.arange(n, dtype=float)[:, None] + 1000 * i for i, n in enumerate(lengths)]
    seen = []
    for rest, here in blocks(parts, 5, context=context):
        scored = np.concatenate([rows[before:] for rows, before in here])[:, 0]
        fitted = np.concatenate(rest)[:, 0]
        assert not set(scored) & set(fitted)
        assert len(scored) + len(fitted) == sum(lengths)
        for rows, before in here:
            assert (np.diff(rows[:, 0]) == 1).all()
            assert context is None or before <= context
        seen.append(scored)
    np.testing.assert_array_equal(np.concatenate(seen), np.concatenate(parts)[:, 0])


def test_a_tail_comes_with_its_context():
    heads, tails = split_tail([np.arange(10.0)[:, None], np.arange(10.0)[:, None]], 0.3, context=4)
    assert [len(one) for one in heads] == [10, 4]
    assert [(len(rows), before) for rows, before in tails] == [(10, 4)]


def test_of_too_many_points_stretches_all_over_are_kept_and_the_joins_are_known(monkeypatch):
    monkeypatch.setattr("tisat.detectors.crossfit.MAX_POINTS", 20)
    monkeypatch.setattr("tisat.detectors.crossfit.MAX_VALUES", 1)
    numbers = np.arange(100.0)[:, None]
    points, starts = join([numbers[:30], numbers[30:30], numbers[30:]], 1)
    assert len(points) == 20
    assert (points[0, 0], points[-1, 0]) == (0.0, 99.0)  # the first and the last season too
    jumps = np.flatnonzero(np.diff(points[:, 0]) != 1.0) + 1
    assert set(jumps) <= set(starts.tolist())
    assert np.bincount((points[:, 0] // 20).astype(int)).tolist() == [4, 4, 4, 4, 4]
    few, joins = join([numbers[:8], numbers[8:15]], 1)
    assert (len(few), joins.tolist()) == (15, [0, 8])


@pytest.mark.parametrize("name", CHEAP)
def test_a_cheap_detector_is_fitted_on_every_row_and_calibrated_on_rows_it_had_not_seen(name):
    cls = registry.resolve(name)
    detector = cls(**cls._test_params()).fit(ROWS)
    assert detector.normal_source_ == "cross-fitted"
    assert detector.trained_on_["rows_used"] == len(ROWS)
    context = detector._context() or 0
    assert len(ROWS) - context - 5 <= len(detector.normal_) <= len(ROWS)
    assert len(detector.normal_breaks_) == 5
    held = cls(**cls._test_params()).fit(ROWS, holdout=0.2)
    assert held.normal_source_ == "held-out tail"
    assert len(held.normal_) <= 0.2 * len(ROWS) + 1


def test_a_block_is_scored_by_a_model_that_has_not_seen_it():
    rows = np.random.default_rng(1).normal(size=(500, 1))
    rows[200:300] *= 50.0  # a block unlike the others: a model that saw it would take it for normal
    detector = make("mahalanobis", window=1).fit(rows)
    seen = detector.points(rows)[200:300].mean()
    assert detector.normal_[200:300].mean() > 20 * seen


def test_too_few_rows_for_five_blocks_fall_back_to_the_tail():
    detector = make("linear-last", window=20).fit(ROWS[:45])
    assert detector.normal_source_ in ("held-out tail", "training rows")


def test_of_a_fleet_machines_all_over_it_are_scored_once_by_a_model_that_has_not_seen_them():
    parts = [np.arange(10_000.0)[:, None] + 1e6 * i for i in range(60)]
    rest, here = spread_stretches(parts, context=100)
    fitted = np.concatenate(rest)[:, 0]
    scored = np.concatenate([rows[before:] for rows, before in here])[:, 0]
    assert not np.isin(scored, fitted).any()
    assert len(scored) + len(fitted) == 600_000
    assert 0.9 * MAX_POINTS <= len(scored) <= MAX_POINTS
    machines = np.unique(scored // 1e6)
    assert len(machines) == MAX_POINTS // LEAST_STRETCH
    assert machines[0] == 0
    assert machines[-1] == 59
    assert all(before == 100 and (np.diff(rows[:, 0]) == 1).all() for rows, before in here)
    assert spread_stretches(parts[:5], context=100) is None
    assert spread_stretches([part[:100] for part in parts], context=10) is None


def test_a_fleet_is_calibrated_on_rows_of_many_machines():
    rng = np.random.default_rng(0)
    fleet = [Series(rng.normal(scale=1 + i / 10, size=(9000, 1)), name=f"m{i}") for i in range(12)]
    detector = make("last-value").fit(fleet)
    assert detector.normal_source_ == "cross-fitted"
    assert len(detector.normal_breaks_) == 12


@pytest.mark.parametrize("name", ["prism", "lof"])
def test_channels_with_too_few_values_are_named(name):
    values = np.column_stack([np.random.default_rng(0).normal(size=(2000, 3)), np.full(2000, np.nan)])
    values[::50, 1] = values[::50, 3] = 1.0
    values[np.arange(2000) % 50 != 0, 1] = np.nan
    series = Series(values, channels=("a", "lab", "c", "lab 2"))
    params = {} if name == "prism" else {"window": 30}
    with pytest.raises(SeriesError, match=r"in more than \d+ rows without a gap\. Channels lab, lab 2 have at most 11\. Leave them out with --drop 'lab,lab 2', or tisat.Series.from_table\(table, drop="):  # fmt: skip
        make(name, **params).fit(series)
    make(name, **params).fit(series.select(["a", "c"]))
    with pytest.raises(SeriesError, match=r"more than 100 rows without a gap\. Got at most 11"):
        make("prism").fit(series.select(["lab"]))


def test_values_that_cannot_be_squared_are_refused():
    for unit, said in (
        (1e101, r"has one of .*e\+102, beyond 1e\+100; give it in larger units"),
        (1e-170, "has none above 1e-150"),
    ):
        with pytest.raises(SeriesError, match=f"a size that can be squared. Channel '1' {said}"):
            make("mahalanobis").fit(ROWS * [1.0, unit])
    make("mahalanobis").fit(ROWS * [1.0, 1e90])
