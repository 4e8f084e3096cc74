"""Scores of a whole file: windows round each row, and the statistic of a watch."""

import numpy as np
import pandas as pd
import pytest

from tisat.detectors import make
from tisat.errors import DataFileError, InputError, ParameterError
from tisat.watch import Watch
from tisat.watch.centred import ahead, joined, own_period, window_scores
from tisat.watch.protocols import fitted_counters
from tisat.watch.scoring import _whole
from waves import quietly, wave


@pytest.mark.parametrize(("numbers", "switches"), [((0, 1), ()), ((0, 1), (2, 3, 4)), ((), (2, 3))])
def test_window_scores_are_their_definition(numbers, switches):
    rng = np.random.default_rng(0)
    train, rows = rng.random((60, 5)), rng.random((40, 5))
    for values in (train, rows):  # channels of few values count together as one
        values[:, 2:] = (values[:, 2:] > [0.5, 0.8, 0.2]).astype(float)
    train[0], train[1] = 0.0, 1.0  # scaled by the range of training
    places = {c: at for at, c in enumerate((*numbers, *switches))}
    train, rows = train[:, list(places)], rows[:, list(places)]
    numbers, switches = [places[c] for c in numbers], [places[c] for c in switches]
    length, scores = 5, window_scores(train, rows, period=5)

    def shapes(values, c):
        return np.array(
            [values[t : t + length, c] - values[t : t + length, c].mean() for t in range(len(values) - length + 1)]
        )

    squares = sum(((shapes(rows, c)[:, None] - shapes(train, c)[None]) ** 2).sum(axis=2).min(axis=1) for c in numbers)
    squares += sum(
        ((shapes(rows, c)[:, None] - shapes(train, c)[None]) ** 2).sum(axis=2).min(axis=1) / len(switches)
        for c in switches
    )
    distance = np.sqrt(squares)
    for t in range(40):
        inside = [distance[s] for s in range(max(0, t - length + 1), min(t, len(distance) - 1) + 1)]
        assert scores[t] == pytest.approx(np.mean(inside))


@pytest.mark.parametrize("period", [7, 24, 90])
def test_the_period_is_found(period):
    rng = np.random.default_rng(1)
    time = np.arange(3000)
    values = np.stack(
        [np.full(3000, 4.0), np.sin(2 * np.pi * time / period) + 0.05 * rng.standard_normal(3000)], axis=1
    )
    assert own_period(values) % period in (0, 1, period - 1)
    assert own_period(values[:, :1]) == 125


def test_a_period_does_not_depend_on_the_unit():
    values = np.sin(np.arange(2000) * 2 * np.pi / 40)[:, None]
    with np.errstate(over="raise"):
        assert [own_period(values * unit) for unit in (1e-300, 1.0, 1e300)] == [40] * 3


def test_normal_rows_may_be_given_as_fit_takes_them(tmp_path):
    values = wave(900, seed=0, channels=2) * [1.0, 5.0]
    frame = pd.DataFrame(values, columns=["a", "b"])
    frame.to_csv(tmp_path / "week.csv", index=False)
    watch = quietly(lambda: Watch("mahalanobis", budget="1/100 rows").fit(frame))
    expected = watch.score(frame[:400], centred=True, train=values)
    for train in (
        frame,
        frame[["b", "a"]],
        tmp_path / "week.csv",
        str(tmp_path / "week.csv"),
        [frame],
        [str(tmp_path / "week.csv")],
        [frame[:450], frame[450:]],
    ):
        np.testing.assert_allclose(watch.score(frame[:400], centred=True, train=train), expected)
    with pytest.raises(DataFileError, match="File not found: 'week'"):
        watch.score(frame, centred=True, train="week")


def test_a_change_of_level_alone_is_no_shape():
    train = wave(2000, seed=0)[:, :1]
    rows = wave(600, seed=1)[:, :1] + 0.3
    odd = rows.copy()
    odd[300:330] = odd[300]
    assert window_scores(train, rows)[100:500].max() < window_scores(train, odd)[300:330].min()


def test_a_watch_gives_its_statistic_and_a_file_its_centred_score():
    train, rows = wave(2000, seed=1), wave(500, seed=2)
    rows[300:310] += 3.0
    watch = quietly(Watch(make("last-value"), budget="1/500 rows").fit, train)
    statistic = watch.score(rows)
    np.testing.assert_array_equal(statistic, watch.alarms(rows).statistic)
    centred = watch.score(rows, centred=True)
    np.testing.assert_allclose(centred, ahead(statistic))
    assert centred[280] > centred[200]  # it sees what comes
    both = watch.score(rows, centred=True, train=train)
    np.testing.assert_allclose(both, joined(window_scores(train, rows), centred, period=own_period(rows)))
    assert both[290:310].min() > np.median(both)
    with pytest.raises(ParameterError, match="train must come with centred=True"):
        watch.score(rows, train=train)


def test_joined_scores_are_their_definition():
    rng = np.random.default_rng(3)
    first, second, period = rng.random(40), np.zeros(40), 7
    standard = (first - first.mean()) / first.std()
    for row in (0, 3, 20, 39):
        around = standard[max(row - 3, 0) : row + 4]
        assert joined(first, second, period=period)[row] == pytest.approx(around.mean())
    np.testing.assert_allclose(joined(first, 5.0 + 2.0 * first, period=1), 2.0 * standard)  # units do not count
    assert len(joined(first[:5], second[:5], period=125)) == 5


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InputError, match="with the channels of train"):
        window_scores(np.zeros((10, 2)), np.zeros((10, 3)))
    with pytest.raises(InputError, match="no missing values"):
        window_scores(np.zeros((10, 1)), np.full((10, 1), np.nan))
    with pytest.raises(InputError, match="at least 4"):
        window_scores(np.zeros((2, 1)), np.zeros((10, 1)))
    assert window_scores(np.zeros((10, 1)), np.zeros((10, 1))).tolist() == [0.0] * 10


def test_counters_and_gaps_have_centred_scores_too():
    rng = np.random.default_rng(4)
    train, rows = (np.column_stack([wave(n, seed=n)[:, 0], np.cumsum(1 + rng.random(n))]) for n in (2000, 500))
    rows[300:330, 1] = rows[299, 1] + np.arange(30) * 0.01  # it hardly grows
    rows[330:, 1] += rows[329, 1] - rows[330, 1]
    rows[100:140, 0] = np.nan
    watch = quietly(Watch(make("last-value"), budget="1/500 instants").fit, train)
    assert fitted_counters(watch.detector) == ("1",)
    scores = watch.score(rows, centred=True, train=train)
    assert np.isfinite(scores).all()
    assert scores[300:330].mean() > np.delete(scores, np.arange(200, 400)).mean()


def test_window_scores_do_not_depend_on_the_units_of_channels():
    train, rows = wave(400, seed=0), wave(300, seed=1)
    units = np.linspace(0.01, 100.0, train.shape[1])
    np.testing.assert_allclose(
        window_scores(train * units, rows * units, period=20), window_scores(train, rows, period=20)
    )


def test_holes_are_filled_from_before_else_from_behind_else_with_zero():
    hole = np.nan
    assert _whole(np.array([[hole, hole], [hole, hole], [3.0, hole], [hole, hole], [5.0, hole]])).T.tolist() == [[3.0, 3.0, 3.0, 3.0, 5.0], [0.0] * 5]  # fmt: skip
    assert _whole(np.array([[hole]])).tolist() == [[0.0]]
