"""Long series: alarms in blocks are the alarms of the whole, only normal points that are kept are scored, memory is bounded."""

import tracemalloc
import warnings

import numpy as np
import pytest

from tisat.detectors import crossfit, point_blocks
from tisat.series import Series
from tisat.watch import Watch


def rows_of(count, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.sin(np.arange(count)[:, None] / np.linspace(7.0, 15.0, channels)) + 0.2 * rng.normal(
        size=(count, channels)
    )
    for start in range(count // 5, count, count // 5):
        rows[start : start + 90, 0] += 3.0  # longer than a block of the tests below
    return rows


@pytest.mark.parametrize("detector", ["prism", "last-value"])
@pytest.mark.parametrize("rule", ["excess", "paper"])
@pytest.mark.parametrize("gaps", [False, True])
def test_alarms_in_blocks_are_the_alarms_of_the_whole(monkeypatch, detector, rule, gaps):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch(detector, budget="1/300 rows", rule=rule).fit(np.sin(rows_of(1500, seed=1)))
    rows = rows_of(1200)
    stamps = np.arange(1200) * 10.0
    if gaps:
        rows[400:430, 1] = np.nan
        rows[700:720] = np.nan
        stamps[900:] += 5000.0
        stamps[-1] += 1e7  # waits to be confirmed
    series = Series(rows, timestamps=stamps)
    whole = watch.alarms(series, any_period=True)
    monkeypatch.setattr(point_blocks, "BLOCK", 37)
    parts = watch.alarms(series, any_period=True)
    assert len(whole) > 2
    for name in ("scores", "statistic", "active", "evidence", "thresholds"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
    for one, other in zip(parts, whole, strict=True):
        assert (one.raised, one.onset, one.cleared, one.state, one.kind) == (
            other.raised, other.onset, other.cleared, other.state, other.kind,
        )  # fmt: skip
        assert one.channels == pytest.approx(other.channels, rel=1e-6)
        assert [each.at for each in one.further] == [each.at for each in other.further]


@pytest.mark.parametrize("lengths", [[900], [300, 40, 500], [120] * 9])
def test_only_rows_that_are_kept_are_scored_and_they_are_the_same(monkeypatch, lengths):
    monkeypatch.setattr(crossfit, "MAX_POINTS", 300)
    monkeypatch.setattr(crossfit, "MAX_VALUES", 300)
    monkeypatch.setattr(crossfit, "LEAST_STRETCH", 30)
    rng, context, scored = np.random.default_rng(0), 10, []
    parts = [rng.normal(size=(length, 1)) for length in lengths]

    def points(rows):
        scored.append(len(rows))
        out = np.full((len(rows), 2), np.nan)
        out[context:, 0], out[context:, 1] = rows[context:, 0], rows[:-context, 0]
        return out

    folds = [pieces for _, pieces in crossfit.blocks(parts, 5, context=context)]
    everything = crossfit.join([one for fold in folds for one in crossfit.score_pieces(points, fold)], 2)
    scored.clear()
    wanted = crossfit.only_kept(folds, 2, context=context)
    some = crossfit.join([one for fold in wanted for part in fold for one in crossfit.score_pieces(points, part)], 2)
    np.testing.assert_array_equal(some[0], everything[0])
    np.testing.assert_array_equal(some[1], everything[1])
    assert sum(scored) < 0.75 * sum(lengths)


@pytest.mark.slow
def test_memory_stays_below_six_times_the_data():
    rows = rows_of(400_000, channels=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Watch(budget="1/1000 rows").fit(rows[:3000]).alarms(rows[:3000])  # compiled, imported
        tracemalloc.start()
        watch = Watch(budget="1/1000 rows").fit(rows)
        watch.alarms(rows)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 6 * rows.nbytes + 50e6  # the model, its normal points and one block
