"""Intervals over events and paired differences: each draw is what one would get by copying the stretches."""

import csv
import io
import re

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tisat.errors import InputError
from tisat.metrics import comparison, spd_score, vus_pr
from tisat.metrics.comparison import compare, stretches
from tisat.metrics.entity_counts import counts_of_scores
from tisat.metrics.evaluation import fixed_metrics, free_metrics, pooled_and_mean
from tisat.metrics.event_draws import draws_of
from tisat.metrics.windows import all_windows


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(5)
    labels, good, bad = [], [], []
    for _ in range(3):
        y = np.zeros(900, dtype=int)
        for start in np.sort(rng.choice(880, 6, replace=False)):
            y[start : start + int(rng.integers(3, 25))] = 1
        labels.append(y)
        good.append(np.round(rng.random(900) + 0.9 * y * rng.random(900), 3))
        bad.append(np.round(rng.random(900) + 0.2 * y * rng.random(900), 3))
    labels.append(np.zeros(200, dtype=int))  # a machine that never failed
    good.append(rng.random(200))
    bad.append(rng.random(200))
    return labels, good, bad


def test_a_stretch_has_one_event_and_no_window_is_cut(labelled):
    for window in all_windows(labelled[0], 30, whose="test"):
        parts = stretches(window)
        assert parts[0][0] == 0
        assert parts[-1][1] == len(window)
        assert [stop for _, stop in parts[:-1]] == [start for start, _ in parts[1:]]
        for (start, stop), (onset, _), end in zip(parts, window.events, window.stops, strict=False):
            assert start <= onset < end <= stop


def test_a_draw_is_what_copies_of_the_stretches_give(labelled):
    labels, good, _ = labelled
    parts = [(i, a, b) for i, one in enumerate(all_windows(labels, 30, whose="test")) for a, b in stretches(one)]
    pieces, truth = [good[i][a:b] for i, a, b in parts], [labels[i][a:b] for i, a, b in parts]
    draw = np.random.default_rng(0).integers(0, 3, len(parts))
    copied = [k for k, times in enumerate(draw) for _ in range(times)]
    found = counts_of_scores(pieces, all_windows(truth, 30, whose="test")).pooled(draw)[0]
    assert found == pytest.approx(
        float(spd_score([truth[k] for k in copied], [pieces[k] for k in copied], delta_max=30))
    )
    owner = np.repeat(np.arange(len(parts)), [b - a for _, a, b in parts])
    y, s = np.concatenate(truth).astype(float), np.concatenate(pieces)
    areas = comparison._areas(y, s, draw[None].astype(float), owner)
    copied_y, copied_s = (np.concatenate([column[k] for k in copied]) for column in (truth, pieces))
    assert areas[0][0] == pytest.approx(roc_auc_score(copied_y, copied_s))
    assert areas[1][0] == pytest.approx(average_precision_score(copied_y, copied_s))


def test_better_scores_are_told_and_equal_ones_are_not(labelled):
    labels, good, bad = labelled
    result = compare(labels, {"good": good, "bad": bad, "again": [2 * s for s in good]}, delta_max=30, resamples=200)
    assert result.n_events == sum(int((np.diff(y, prepend=0) == 1).sum()) for y in labels)
    by_pair = {(d.score, d.first, d.second): d for d in result.differences}
    assert by_pair["SPD", "good", "bad"].interval.excludes_zero
    assert by_pair["SPD", "good", "bad"].p < 0.05
    same = by_pair["SPD", "good", "again"]
    assert same.interval.value == same.interval.low == same.interval.high == 0
    assert same.p == 1
    assert "cannot tell good from again" in str(same)
    assert "good is better than bad" in str(result)
    interval = result.intervals["SPD"]["good"]
    assert interval.low < interval.value < interval.high
    assert interval.value == pytest.approx(float(spd_score(labels, good, delta_max=30)))
    again = compare(labels, {"good": good, "bad": bad}, delta_max=30, resamples=200)
    assert again.intervals["SPD"]["good"] == interval  # the same seed draws the same events


def test_it_is_told_in_every_form(labelled):
    labels, good, bad = labelled
    result = compare(labels, {"a<b>": good, "b": bad}, delta_max=30, resamples=100)
    assert len(list(csv.DictReader(io.StringIO(result.to_csv())))) == 6
    assert "&lt;b&gt;" in result._repr_html_()
    assert result.to_dict()["differences"][0]["first"] == "a<b>"


def test_a_difference_in_words_is_the_better_less_the_other(labelled):
    labels, good, bad = labelled
    result = compare(labels, {"bad": bad, "good": good}, delta_max=30, resamples=200)
    first = result.differences[0]
    assert first.interval.value < 0  # bad less good, as the fields have it
    assert re.search(r"good is better than bad \(difference \+\d.*, interval \+\d.* to \+\d", result.verdict[0])


def test_several_pairs_are_adjusted_and_many_summed_up(labelled):
    labels, good, bad = labelled
    rng = np.random.default_rng(1)
    scores = {"good": good, "bad": bad} | {f"noise {i}": [rng.random(len(y)) for y in labels] for i in range(3)}
    pair = compare(labels, {"good": good, "bad": bad}, delta_max=30, resamples=200)
    result = compare(labels, scores, delta_max=30, resamples=200)
    alone, among = pair.differences[0].p, result.differences[0].p
    assert alone < among <= 10 * alone
    assert len(result.verdict) == 4  # a sentence for each score, not for each of ten pairs
    assert result.verdict[0].startswith("SPD: good is highest")
    assert result.verdict[-1] == "Each p is adjusted for the 10 pairs of a score (Holm)."
    assert "Holm" not in str(pair)
    assert "interval of this pair alone +" in str(result.differences[0])
    assert "alone" not in str(pair), "nothing was adjusted"


def test_scores_without_names_are_refused():
    with pytest.raises(InputError, match="must map names to scores"):
        compare([0, 1, 0], [[0.1, 0.2, 0.3]])


def test_few_events_are_said_and_none_refused(labelled):
    y = np.zeros(300, dtype=int)
    y[100:120] = y[200:210] = 1
    assert "only 2 events" in compare(y, {"s": y + 0.0}, resamples=100).verdict[-1]
    with pytest.raises(InputError, match="at least one event"):
        compare(np.zeros(10, dtype=int), {"s": np.arange(10.0)})
    with pytest.raises(InputError, match="at least one set of scores"):
        compare(y, {})


def test_long_series_get_as_many_draws_as_were_asked_for():
    y = (np.arange(70_000) % 7000 < 20).astype(int)
    found = compare(y, {"s": np.random.default_rng(0).random(len(y))}, delta_max=30, resamples=400)
    assert {each["s"].draws for each in found.intervals.values()} == {400}
    assert found.draws == "400 draws"


def test_times_may_be_given(labelled):
    labels, good, _ = labelled
    stamps = [np.datetime64("2026-01-01") + np.arange(len(y)) * np.timedelta64(60, "s") for y in labels]
    timed = compare(labels, {"g": good}, delta_max="30min", timestamps=stamps, resamples=100)
    plain = compare(labels, {"g": good}, delta_max=30, resamples=100)
    assert timed.intervals["SPD"]["g"].value == pytest.approx(plain.intervals["SPD"]["g"].value, abs=0.02)


def test_every_score_of_a_draw_is_what_copies_of_the_stretches_give(labelled):
    labels, _, bad = labelled
    scores = [np.where(np.arange(len(s)) < 40, np.nan, s) for s in bad]
    parts = [(i, a, b) for i, one in enumerate(all_windows(labels, 30, whose="test")) for a, b in stretches(one)]
    truth, pieces = ([np.asarray(column[i][a:b]) for i, a, b in parts] for column in (labels, scores))
    windows = all_windows(truth, 30, whose="test")
    weights = np.random.default_rng(1).multinomial(len(parts), np.full(len(parts), 1 / len(parts)), size=30) * 1.0
    pieces[0], weights[2] = np.full(len(pieces[0]), np.nan), len(parts) * (np.arange(len(parts)) == 0)
    options = {"delta_max": 30, "max_buffer": 30}
    names = [*free_metrics(truth, timestamps=None, **options), *fixed_metrics(truth, windows)]
    values = dict.fromkeys(names, 0.5)
    draws = draws_of(truth, pieces, None, windows, weights, values, threshold=0.7, **options)
    assert set(draws) == set(names) - {"AUC-ROC", "AUC-PR"}
    for k, weight in enumerate((np.ones(len(parts)), *weights[:2])):
        copied = [i for i, times in enumerate(weight) for _ in range(int(times))]
        y, s = ([column[i] for i in copied] for column in (truth, pieces))
        masks = [(one >= 0.7) * 1.0 for one in s]
        metrics = {name: (metric, s) for name, metric in free_metrics(y, timestamps=None, **options).items()}
        fixed = fixed_metrics(y, [windows[i] for i in copied])
        metrics |= {name: (metric, masks) for name, metric in fixed.items()}
        found = {name: pooled_and_mean(metric(of))[0] for name, (metric, of) in metrics.items()}
        if k == 0:
            whole = found
            continue
        for name, each in draws.items():
            expected = comparison.of_whole(np.array([found[name]]), 0.5, whole[name])
            assert each[k - 1] == pytest.approx(expected[0], abs=1e-12), name
    assert np.isnan(draws["VUS-PR"][2]), "a draw without any score has none"


def test_what_a_score_needs_of_a_stretch_is_computed_once_for_all_draws(labelled, monkeypatch):
    labels, good, _ = labelled
    whole = compare(labels, {"g": good}, delta_max=30, resamples=200, every=True)
    measured = []

    def counted(y_true, y_score, **options):
        found = vus_pr(y_true, y_score, **options)
        measured.append(len(found.per_series))
        return found

    monkeypatch.setattr("tisat.metrics.evaluation.vus_pr", counted)
    again = compare(labels, {"g": good}, delta_max=30, resamples=200, every=True)
    assert measured == [len(labels), 20], "the value itself, then that of the stretches with each draw"
    assert again.rows() == whole.rows()


def test_one_event_has_no_interval():
    y = np.repeat([0, 1, 0], [40, 10, 50])
    found = compare(y, {"s": np.arange(100.0) % 50}, delta_max=5, resamples=100, every=True, thresholds={"s": 45.0})
    for each in found.intervals.values():
        assert np.isnan(each["s"].low)
        assert np.isnan(each["s"].high)
    assert "95 % interval over 1 event\n" in str(found)
    assert "nan" not in str(found)


def test_an_alarm_that_is_on_across_a_cut_has_an_interval_about_its_own_value():
    """Cut between its events, one long alarm is several with one event each: range-based F1 0.059 had the interval 0.145 to 0.191."""
    rng = np.random.default_rng(0)
    labels = [np.zeros(1500, dtype=int) for _ in range(12)]
    for y in labels:
        for start in (200, 600, 1100):
            y[start + int(rng.integers(80)) :][:40] = 1
    always = [np.ones(1500) for _ in labels]
    found = compare(labels, {"always": always}, delta_max=50, resamples=400, every=True, thresholds={"always": 1.0})
    interval = found.intervals["range-based F1"]["always"]
    assert interval.low <= interval.value <= interval.high
    assert interval.high - interval.low < interval.value  # as wide as what it is about
