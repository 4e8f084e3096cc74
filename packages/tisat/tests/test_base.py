"""What the contract says about missing values, gaps in time, held-out rows and lists of series."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.utils.validation import check_is_fitted

from contract.toy import Distance
from tisat.detectors import Detector, from_function
from tisat.errors import InputError, ParameterError, SeriesError
from tisat.gap_filling import MAX_GAP, carry_forward, take_in, usable_parts
from tisat.registry import resolve
from tisat.series import Series
from tisat.testing.contracts import check_detector

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((200, 2))


def naive_carry_forward(values):
    """Value by value, from the definition."""
    filled = values.copy()
    for c in range(values.shape[1]):
        last, age = np.nan, MAX_GAP + 1
        for t in range(len(values)):
            last, age = (values[t, c], 0) if not np.isnan(values[t, c]) else (last, age + 1)
            filled[t, c] = last if age <= MAX_GAP else np.nan
    return filled


holes = hnp.arrays(
    float, st.tuples(st.integers(1, 60), st.integers(1, 3)), elements=st.sampled_from([np.nan, 1.0, 2.0, 3.0])
)
runs_of_holes = st.lists(st.tuples(st.booleans(), st.integers(1, 2 * MAX_GAP)), min_size=1, max_size=6)


@given(holes)
def test_carrying_forward_is_its_definition(values):
    np.testing.assert_array_equal(carry_forward(values), naive_carry_forward(values))


@given(runs_of_holes)
def test_long_holes_stay_open(runs):
    values = np.concatenate([np.full(n, np.nan if missing else 1.0) for missing, n in runs])[:, None]
    np.testing.assert_array_equal(carry_forward(values), naive_carry_forward(values))


@settings(max_examples=60)
@given(runs_of_holes, st.sets(st.integers(1, 100), max_size=3))
def test_parts_cover_every_usable_row_once_and_never_cross_a_gap(runs, jumps):
    values = np.concatenate([np.full(n, np.nan if missing else 1.0) for missing, n in runs])[:, None]
    seconds = np.arange(len(values)) * 60.0
    for row in jumps:
        seconds[row:] += 60.0 * (MAX_GAP + 5)
    series = Series(values, timestamps=seconds)
    parts = usable_parts(series)
    gaps = [] if series.period is None else np.flatnonzero(np.diff(seconds) > MAX_GAP * series.period) + 1
    stretches = [naive_carry_forward(part) for part in np.split(values, gaps)]  # nothing is carried across a gap
    usable = ~np.isnan(np.concatenate(stretches)[:, 0])
    covered = np.zeros(len(values), dtype=int)
    for rows, part in parts:
        covered[rows] += 1
        assert not np.isnan(part).any()
        if series.period == 60.0:
            assert (np.diff(seconds[rows]) <= MAX_GAP * 60.0).all()
    np.testing.assert_array_equal(covered, usable)


def test_a_series_that_lacks_nothing_is_not_copied_but_for_training():
    series = Series(ROWS)
    assert np.shares_memory(take_in(series, period=None).filled, series.values)
    part = usable_parts(series)[0][1]
    assert part.flags.writeable
    assert not np.shares_memory(part, series.values)


def test_a_jump_in_time_restarts_the_warm_up():
    from tisat.detectors import make

    detector = make("linear-mean", window=8).fit(ROWS)
    seconds = np.arange(100) * 60.0
    seconds[50:] += 3600.0
    scores = detector.decision_function(Series(ROWS[:100], timestamps=seconds))
    alone = detector.decision_function(ROWS[50:100])
    np.testing.assert_array_equal(scores[50:], alone)
    assert np.isnan(scores[50])
    seconds[50:] -= 3600.0 - 3 * 60.0  # three minutes are bridged
    assert np.isfinite(detector.decision_function(Series(ROWS[:100], timestamps=seconds))[50])


def test_the_tail_is_held_out_and_kept_as_normal():
    detector = Distance().fit(ROWS)
    np.testing.assert_allclose(detector.mean_, ROWS[:160].mean(axis=0))
    assert detector.normal_source_ == "held-out tail"
    np.testing.assert_array_equal(detector.normal_, detector.points(ROWS[160:]))
    whole = Distance().fit(ROWS, holdout=0.0)
    np.testing.assert_allclose(whole.mean_, ROWS.mean(axis=0))
    assert whole.normal_source_ == "training rows"
    assert len(whole.normal_) == 200


def test_several_series_are_fitted_together():
    detector = Distance().fit([Series(ROWS[:100], name="a"), Series(ROWS[100:], name="b")], holdout=0.0)
    np.testing.assert_allclose(detector.mean_, ROWS.mean(axis=0))
    assert detector.trained_on_["series"] == ["a", "b"]
    with pytest.raises(SeriesError, match=r"same channels\. 'b' differs"):
        Distance().fit([Series(ROWS[:100]), Series(ROWS[100:, :1], name="b")])


def test_named_refusals():
    with pytest.raises(ParameterError, match=r"'holdout' parameter of Distance\.fit"):
        Distance().fit(ROWS, holdout=0.9)
    empty = ROWS.copy()
    empty[:, 1] = np.nan
    with pytest.raises(SeriesError, match="Channel '1' has none"):
        Distance().fit(empty)
    with pytest.raises(SeriesError, match="at least 2 usable rows"):
        Distance().fit(ROWS[:1])


def test_scikit_learn_knows_what_is_fitted():
    check_is_fitted(Distance().fit(ROWS))
    assert Distance().fit(ROWS).trained_on_["rows"] == 200


def test_the_normal_level_is_a_quantile_of_the_normal_scores():
    detector = Distance().fit(ROWS, holdout=0.0)
    assert detector.normal_level(quantile=0.5) == np.median(detector.decision_function(ROWS))


def test_a_detector_has_at_most_twenty_public_names():
    assert [cls.__name__ for cls in Detector.__mro__] == [
        "Detector",
        "AlarmsInOneStep",
        "Parametrized",
        "ABC",
        "object",
    ]
    assert len([name for name in dir(Detector) if not name.startswith("_")]) <= 20


def test_a_trait_beside_the_traits_is_refused():
    with pytest.raises(TypeError, match=r"Own must declare 'partial' in its traits: traits = Traits\(partial=...\)"):
        type("Own", (Distance,), {"partial": True})


def test_points_of_another_number_of_rows_are_refused_in_a_sentence():
    class Short(Distance):
        """It forgets the rows of its warm-up."""

        def _points(self, part):
            return super()._points(part)[24:]

        def _context(self):
            return 24

    rows = np.random.default_rng(0).normal(size=(800, 2))
    must = r"Short\._points must return as many rows as it gets, \(T, m\), NaN while warming up\. Got \(40, 1\) for 64 rows\."
    with pytest.raises(InputError, match=must):
        Short().fit(rows)
    with pytest.raises(InputError, match=must):
        check_detector(Short)

    class Late(Distance):
        """It forgets them after training."""

        def _points(self, part):
            return super()._points(part)[24 * getattr(self, "late", False) :]

    fitted = Late().fit(rows)
    fitted.late = True
    with pytest.raises(InputError, match=r"Got \(776, 1\) for 800 rows"):
        fitted.alarms(rows, false_alarms="1/20 rows")


def test_points_that_are_never_numbers_are_not_blamed_on_the_length_of_the_series():
    def divided(values):
        with np.errstate(all="ignore"):
            return values[:, 0] / 0.0 * 0.0

    with pytest.raises(
        InputError, match=r"numbers after its warm-up of 4 rows. Got NaN in each of 396 training rows; does it"
    ):
        from_function(divided, context=4).fit(np.ones((400, 2)), holdout=0.0)
    with pytest.raises(SeriesError, match=r"in more than 4 rows without a gap|must be longer than its warm-up"):
        from_function(divided, context=4).fit([np.ones((4, 2))] * 20, holdout=0.0)


def test_an_unknown_detector_is_answered_with_the_way_to_make_it_known():
    with pytest.raises(ParameterError, match="--import module:Class") as refused:
        resolve("seasonal-naive")
    assert len(str(refused.value)) < 300
