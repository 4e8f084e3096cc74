"""Contract tests of the metrics: they equal their reference implementations, keep their bounds, and do not move when nothing that matters moves."""

import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
from naive_vus import vus_2025
from tisat import metrics
from tisat.metrics.alarm_counts import raise_times
from tisat.metrics.baselines import PROBABILITIES, _expected_false_alarms, rolling_maximum
from tisat.metrics.spd import points_of
from tisat.metrics.windows import windows_of

pytestmark = pytest.mark.filterwarnings("ignore::tisat.errors.SeriesWarning")  # of labels without an event
DELTAS = st.sampled_from([1, 2, 3, 5, 8, 100])
COUNTINGS = st.sampled_from(["event", "instance"])


@st.composite
def one_series(draw, max_length=40):
    """Labels in blocks (adjacent events, events at both ends, all, none) and scores with ties, NaN and long runs."""
    length = draw(st.integers(1, max_length))
    block = draw(st.integers(1, 6))
    pattern = draw(st.lists(st.booleans(), min_size=1, max_size=length))
    labels = np.repeat(np.array(pattern, dtype=int), block)[:length]
    labels = np.pad(labels, (0, length - len(labels)))
    kind = draw(st.sampled_from(["ties", "smooth", "distinct"]))
    if kind == "ties":
        scores = np.array(draw(st.lists(st.integers(0, 3), min_size=length, max_size=length)), dtype=float)
    else:
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        scores = np.cumsum(rng.normal(size=length)) if kind == "smooth" else rng.random(length)
    for t in draw(st.lists(st.integers(0, length - 1), max_size=4)):
        scores[t] = np.nan
    assume(not np.isnan(scores).all())
    return labels, scores


@st.composite
def many_series(draw):
    series = draw(st.lists(one_series(max_length=25), min_size=1, max_size=3))
    return [y for y, _ in series], [s for _, s in series]


def same(a, b):
    return (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b, abs=1e-12)


def random_case(rng):
    """One to three short series: blocks of labels, tied, smooth or distinct scores, NaN, irregular clocks."""
    labels, scores, times = [], [], []
    for _ in range(rng.integers(1, 4)):
        length = int(rng.integers(1, 25))
        labels.append(
            (np.repeat(rng.random(length), rng.integers(1, 5))[:length] < rng.choice([0, 0.1, 0.3, 0.6, 1])).astype(int)
        )
        kinds = (rng.integers(0, 4, length).astype(float), rng.random(length), np.cumsum(rng.normal(size=length)))
        s = kinds[rng.integers(3)].copy()
        s[rng.random(length) < rng.choice([0, 0.2])] = np.nan
        scores.append(s)
        times.append(np.cumsum(rng.integers(1, 5, length)))
    return labels, scores, times, int(rng.choice([1, 2, 3, 5, 8, 100])), str(rng.choice(["event", "instance"]))


def check_random_cases(number, seed):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        labels, scores, times, delta_max, counting = random_case(rng)
        if all(np.isnan(s).all() for s in scores):
            continue
        counted = metrics.spd_score(labels, scores, delta_max=delta_max, counting=counting)
        assert same(counted, naive.spd(labels, scores, delta_max, counting)), (labels, scores, delta_max, counting)
        timed = metrics.spd_score(labels, scores, delta_max=f"{delta_max}s", counting=counting, timestamps=times)
        assert same(timed, naive.spd(labels, scores, delta_max, counting, times)), (
            labels,
            scores,
            times,
            delta_max,
            counting,
        )


def test_random_cases_equal_the_slow_twin():
    check_random_cases(400, seed=20)


@pytest.mark.slow
def test_thirty_thousand_random_cases_equal_the_slow_twin():
    check_random_cases(30_000, seed=21)


@settings(max_examples=75)
@given(many_series(), DELTAS, COUNTINGS)
def test_spd_equals_its_slow_twin(series, delta_max, counting):
    labels, scores = series
    score = metrics.spd_score(labels, scores, delta_max=delta_max, counting=counting)
    assert same(score, naive.spd(labels, scores, delta_max, counting))
    for one, y, s in zip(score.per_series, labels, scores, strict=True):
        assert same(one, naive.spd([y], [s], delta_max, counting))


@settings(max_examples=75, deadline=None)
@given(many_series(), DELTAS, COUNTINGS, st.data())
def test_spd_with_durations_and_irregular_time_equals_its_slow_twin(series, delta_max, counting, data):
    labels, scores = series
    steps = [data.draw(st.lists(st.integers(1, 6), min_size=len(y), max_size=len(y))) for y in labels]
    times = [np.cumsum(s) for s in steps]
    expected = naive.spd(labels, scores, delta_max, counting, [t.tolist() for t in times])
    stamps = [np.datetime64("2024-02-29") + t.astype("timedelta64[s]") for t in times]
    for duration, clock in (
        (f"{delta_max}s", times),
        (timedelta(seconds=delta_max), stamps),
        (np.timedelta64(delta_max, "s"), stamps),
    ):
        assert same(
            metrics.spd_score(labels, scores, delta_max=duration, counting=counting, timestamps=clock), expected
        )


@settings(max_examples=150, deadline=None)
@given(one_series(), DELTAS, COUNTINGS, st.integers(1, 1000))
def test_a_duration_on_regular_time_is_a_count_of_time_steps(series, delta_max, counting, period):
    labels, scores = series
    seconds = np.arange(len(labels)) * period
    in_time = metrics.spd_score(
        labels, scores, delta_max=f"{delta_max * period}s", counting=counting, timestamps=seconds
    )
    assert same(in_time, metrics.spd_score(labels, scores, delta_max=delta_max, counting=counting))


@settings(max_examples=75, deadline=None)
@given(many_series(), DELTAS)
def test_counts_at_every_threshold_equal_the_twin(series, delta_max):
    labels, scores = series
    windows = [windows_of(y, delta_max) for y in labels]
    known = np.concatenate(scores)
    points = points_of(scores, windows, counting="event", thresholds=known[~np.isnan(known)])
    for k, (h, nadd, tp, fp) in enumerate(naive.curve(labels, scores, delta_max)):
        assert points.thresholds[k] == h
        assert (points.true_alarms[k], points.false_alarms[k]) == (tp, fp)
        counts = metrics.count_at_threshold(labels, scores, threshold=h, delta_max=delta_max)
        assert (counts.true_alarms, counts.n_false_alarms) == (tp, fp)
        if not math.isnan(nadd):
            assert points.nadd[k] == pytest.approx(nadd)
            assert counts.normalised_delay == pytest.approx(nadd)


@settings(max_examples=150, deadline=None)
@given(one_series(), DELTAS)
def test_raises_equal_the_twin_and_raise_times_can_stand_for_masks(series, delta_max):
    labels, scores = series
    on = scores >= np.nanmedian(scores)
    windows = windows_of(labels, delta_max)
    raised = raise_times(on, windows)
    assert raised.tolist() == naive.raises(on, delta_max)
    by_mask = metrics.count_alarms(labels, on, delta_max=delta_max)
    by_raise = metrics.count_raises(labels, raised, delta_max=delta_max)
    assert by_mask.n_false_alarms == by_raise.n_false_alarms
    assert (
        by_raise.true_alarms <= by_mask.true_alarms
    )  # a run that began before the onset is active inside, but was raised outside
    assert (by_raise.delays >= by_mask.delays).all()


@settings(max_examples=50, deadline=None)
@given(many_series(), DELTAS)
def test_a_score_is_the_process_of_its_own_masks(series, delta_max):
    labels, scores = series
    thresholds = {float(s) for one in scores for s in one if not math.isnan(s)}
    family = {h: [one >= h for one in scores] for h in thresholds}
    process = metrics.spd_score_of_active(labels, family, delta_max=delta_max)
    plain = metrics.spd_score(labels, scores, delta_max=delta_max)
    assert same(process, plain)
    assert same(process.per_series_mean, plain.per_series_mean)


@settings(max_examples=75, deadline=None)
@given(one_series(), DELTAS, COUNTINGS)
def test_increasing_transforms_and_shifts_in_time_change_nothing(series, delta_max, counting):
    labels, scores = series
    score = metrics.spd_score(labels, scores, delta_max=delta_max, counting=counting)
    ranks = np.searchsorted(np.unique(scores[~np.isnan(scores)]), scores).astype(float)
    for moved in (3 * scores - 7, np.where(np.isnan(scores), np.nan, ranks), np.arctan(scores / 16)):
        if len(np.unique(moved[~np.isnan(moved)])) == len(
            np.unique(scores[~np.isnan(scores)])
        ):  # rounding can make ties
            assert same(score, metrics.spd_score(labels, moved, delta_max=delta_max, counting=counting))
    quiet = np.full(7, np.nan)  # silence before: every row moves by 7, nothing else
    shifted = metrics.spd_score(
        np.append(np.zeros(7, int), labels), np.append(quiet, scores), delta_max=delta_max, counting=counting
    )
    assert same(score, shifted)


@settings(max_examples=75, deadline=None)
@given(many_series(), DELTAS, COUNTINGS)
def test_bounds_and_order(series, delta_max, counting):
    labels, scores = series
    score = metrics.spd_score(labels, scores, delta_max=delta_max, counting=counting)
    if any(y.any() for y in labels):
        assert 0 <= score <= 1 + 1e-12
        backwards = metrics.spd_score(labels[::-1], scores[::-1], delta_max=delta_max, counting=counting)
        assert same(score, backwards)
        perfect = []
        for y in labels:
            onset = np.diff(y, prepend=0) == 1
            perfect.append(onset.astype(float))
        assert metrics.spd_score(labels, perfect, delta_max=delta_max, counting=counting) == 1
    else:
        assert math.isnan(score)
    curve = metrics.spd_curve(labels, scores, delta_max=delta_max, counting=counting)
    assert same(curve.score, score)
    assert (np.diff(curve.thresholds) < 0).all()
    assert (np.diff(curve.nadd) <= 1e-12).all()


@settings(max_examples=75, deadline=None)
@given(many_series(), DELTAS, st.sampled_from([0, 10, 33.3, 50, 100]))
def test_best_scores_equal_their_twins(series, delta_max, k):
    labels, scores = series
    assert same(metrics.best_instance_f1(labels, scores).f1, naive.best_f1(labels, scores))
    assert same(metrics.best_adjusted_f1(labels, scores).f1, naive.best_f1(labels, scores, adjusting=0))
    assert same(metrics.best_pa_k_f1(labels, scores, k=k).f1, naive.best_f1(labels, scores, adjusting=k))
    assert same(
        metrics.best_event_f1(labels, scores, delta_max=delta_max).f1, naive.best_event_f1(labels, scores, delta_max)
    )


@settings(max_examples=150, deadline=None)
@given(many_series(), st.sampled_from([0, 25, 100]))
def test_scores_at_a_threshold_equal_their_twins_and_the_best_is_one_of_them(series, k):
    labels, scores = series
    h = float(np.nanmedian(np.concatenate(scores)))
    plain = np.sum([naive.instance_counts(y, naive.active(s, h)) for y, s in zip(labels, scores, strict=True)], axis=0)
    assert same(metrics.instance_precision_recall(labels, scores, threshold=h).f1, naive.f1(*plain))
    adjusted = [
        naive.instance_counts(y, naive.adjust(y, naive.active(s, h), k)) for y, s in zip(labels, scores, strict=True)
    ]
    assert same(metrics.pa_k_precision_recall(labels, scores, threshold=h, k=k).f1, naive.f1(*np.sum(adjusted, axis=0)))
    best = metrics.best_adjusted_f1(labels, scores)
    if not math.isnan(best.threshold):
        again = metrics.adjusted_precision_recall(labels, scores, threshold=best.threshold)
        assert (again.precision, again.recall, again.f1) == pytest.approx((best.precision, best.recall, best.f1))
    assert same(
        metrics.pa_k_precision_recall(labels, scores, threshold=h, k=0).f1,
        metrics.adjusted_precision_recall(labels, scores, threshold=h).f1,
    )


@settings(max_examples=150, deadline=None)
@given(
    one_series(),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from(["one", "reciprocal"]),
    st.sampled_from(["flat", "front", "middle", "back"]),
)
def test_range_based_equals_its_twin(series, existence, cardinality, bias):
    labels, scores = series
    h = float(np.nanmedian(scores))
    mine = metrics.range_precision_recall(
        labels, scores, threshold=h, existence=existence, cardinality=cardinality, bias=bias
    )
    twin = naive.range_precision_recall(labels, naive.active(scores, h), existence, cardinality, bias)
    assert same(mine.precision, twin[0])
    assert same(mine.recall, twin[1])


@settings(max_examples=25, deadline=None)
@given(one_series(max_length=14))
def test_affiliation_equals_its_twin(series):
    labels, scores = series
    assume(labels.any())
    h = float(np.nanmax(scores))
    mine = metrics.affiliation_precision_recall(labels, scores, threshold=h)
    twin = naive.affiliation(labels, naive.active(scores, h), grid=80)
    assert mine.precision == pytest.approx(twin[0], abs=0.03, nan_ok=True)
    assert mine.recall == pytest.approx(twin[1], abs=0.03)


@settings(max_examples=75, deadline=None)
@given(one_series(max_length=25), st.integers(0, 7))
def test_vus_equals_its_twin(series, max_buffer):
    labels, scores = series
    assume(labels.any())
    assert metrics.vus_pr(labels, scores, max_buffer=max_buffer, version="2022") == pytest.approx(
        naive.vus_pr(labels, scores, max_buffer)
    )


@settings(max_examples=75, deadline=None)
@given(one_series(max_length=25), st.integers(0, 7))
def test_vus_of_2025_equals_its_twin(series, max_buffer):
    labels, scores = series
    assume(labels.any() and not labels.all() and not np.isnan(scores).all())
    precision, roc = vus_2025(labels, scores, max_buffer)
    assert metrics.vus_pr(labels, scores, max_buffer=max_buffer) == pytest.approx(precision, abs=1e-12)
    assert metrics.vus_roc(labels, scores, max_buffer=max_buffer) == pytest.approx(roc, abs=1e-12, nan_ok=True)
    every = metrics.vus_pr(labels, scores, max_buffer=max_buffer, thresholds=len(labels))
    assert every == pytest.approx(precision, abs=1e-12)  # each rank a threshold: the same


@settings(max_examples=50, deadline=None)
@given(one_series(max_length=25), st.integers(0, 7))
def test_vus_roc_equals_its_twin(series, max_buffer):
    labels, scores = series
    assume(labels.any() and not labels.all() and not np.isnan(scores).all())
    found = metrics.vus_roc(labels, scores, max_buffer=max_buffer, version="2022")
    assert found == pytest.approx(naive.vus_roc(labels, scores, max_buffer))


@settings(max_examples=50, deadline=None)
@given(one_series(max_length=25), st.integers(0, 7))
def test_pate_equals_its_twin(series, max_buffer):
    labels, scores = series
    assume(labels.any() and not np.isnan(scores).all())
    assert metrics.pate(labels, scores, max_buffer=max_buffer) == pytest.approx(naive.pate(labels, scores, max_buffer))


@settings(max_examples=50, deadline=None)
@given(
    one_series(max_length=25), st.sampled_from([("standard", 0.11, 1.0), ("low-fp", 0.22, 1.0), ("low-fn", 0.11, 2.0)])
)
def test_nab_equals_its_twin_at_every_threshold_and_its_best(series, profile):
    labels, scores = series
    assume(labels.any() and not np.isnan(scores).all())
    name, *costs = profile
    twins = {float(h): naive.nab(labels, scores, h, *costs) for h in scores[~np.isnan(scores)]}
    for h, twin in twins.items():
        assert metrics.nab_score(labels, scores, threshold=h, profile=name) == pytest.approx(twin)
    assert metrics.nab_score(labels, scores, profile=name) == pytest.approx(max(0.0, *twins.values()))


@settings(max_examples=60, deadline=None)
@given(one_series(), DELTAS)
def test_expected_false_alarms_equal_the_sum_over_starts(series, delta_max):
    labels, _ = series
    expected = _expected_false_alarms([windows_of(labels, delta_max)])[0]
    times = np.cumsum(1 + np.arange(len(labels)) % 3)  # irregular
    irregular = _expected_false_alarms([windows_of(labels, f"{delta_max}s", timestamps=times)])[0]
    for i in (0, 300, 600, 900, len(PROBABILITIES) - 1):
        p = PROBABILITIES[i]
        assert expected[i] == pytest.approx(naive.expected_false_alarms(labels.tolist(), delta_max, p), abs=1e-9)
        assert irregular[i] == pytest.approx(
            naive.expected_false_alarms(labels.tolist(), delta_max, p, times.tolist()), abs=1e-9
        )


@settings(max_examples=50, deadline=None)
@given(one_series(), DELTAS)
def test_held_is_the_running_maximum(series, delta_max):
    labels, scores = series
    values = np.nan_to_num(scores)
    width = max(delta_max // 2, 1)
    expected = [values[max(t - width + 1, 0) : t + 1].max() for t in range(len(values))]
    assert rolling_maximum(values, windows_of(labels, delta_max)).tolist() == expected
