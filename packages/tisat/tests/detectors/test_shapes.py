"""Shapes of one channel, and channels that never moved in training: what the views of prism see of them."""

import numpy as np
import pytest

from tisat.detectors import make
from tisat.detectors.loading import load
from tisat.detectors.prism import VIEWS, Scene
from tisat.detectors.prism.neighbour import Neighbour
from tisat.detectors.prism.shape import APART, ROWS, shapes_of, training_shapes
from tisat.persistence.model_file import read_artefact, write_artefact

JOINT, NEIGHBOUR = (list(VIEWS).index(name) for name in ("joint", "neighbour"))


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(3000) / 7.0)[:, None] + 0.02 * rng.standard_normal((3000, 1))


@pytest.fixture(scope="module")
def detector(wave):
    return make("prism").fit(wave)


def scene(rows):
    at = np.arange(ROWS - 1, len(rows))
    return Scene(rows, at, np.zeros((len(at), rows.shape[1])))


def test_with_one_channel_the_joint_view_is_the_distance_to_the_nearest_shape(detector, wave):
    view, rows = detector._views["joint"], detector._scaled(wave[:200] + 3.0)  # another level is no other shape
    at = np.arange(150, 200)
    found = view.contributions(Scene(rows, at, np.zeros((len(at), 1))))
    windows = np.array([rows[t - ROWS + 1 : t + 1, 0] - rows[t - ROWS + 1 : t + 1, 0].mean() for t in at])
    expected = ((windows[:, None] - view.shapes[None]) ** 2).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9, atol=1e-12)
    alone = np.concatenate([view.contributions(Scene(rows, at[i : i + 1], np.zeros((1, 1)))) for i in range(50)])
    np.testing.assert_array_equal(alone, found)


def test_a_shape_that_training_does_not_have_is_seen_and_a_level_is_not(detector, wave):
    odd, high = wave[:600].copy(), wave[:600] + 0.4
    odd[400:422] = odd[400]  # flat for half a wave, within the usual range and without a jump
    scores = [detector.points(rows)[:, JOINT] for rows in (odd, high, wave[:600])]
    assert scores[0][410:425].max() > 20.0
    assert np.nanmax(scores[1][200:]) < 5.0
    assert np.nanmax(scores[2]) < 5.0


def test_a_training_row_does_not_find_itself(detector, wave):
    view = detector._views["joint"]
    rows = detector._scaled(wave)
    whole = [scene(rows[:1500]), scene(rows[1500:])]
    view.shapes, view.when = training_shapes(whole)
    assert view.own(whole).min() > 0.0
    assert view.contributions(whole[0])[::2].min() == pytest.approx(0.0, abs=1e-12)
    assert np.diff(view.when).max() > APART  # parts are numbered on with a gap
    assert shapes_of(rows, np.arange(100, 200)).mean(axis=1) == pytest.approx(0.0, abs=1e-12)


def test_with_several_channels_the_joint_view_is_what_it_was(wave):
    several = make("prism").fit(np.hstack([wave, wave[::-1]]))
    assert several._views["joint"].shapes.shape == (0, ROWS)


def test_a_channel_that_never_moved_in_training_is_seen_to_move(wave):
    rng = np.random.default_rng(1)
    rows = np.hstack([wave, rng.standard_normal((3000, 2)), np.full((3000, 1), 7.0)])
    detector = make("prism").fit(rows)
    assert detector._views["neighbour"].still.tolist() == [0.0, 0.0, 0.0, 1.0]
    moved = rows[:800].copy()
    moved[600:, 3] = 9.0
    before, after = (detector.points(one)[:, NEIGHBOUR] for one in (rows[:800], moved))
    np.testing.assert_array_equal(after[:600], before[:600])
    assert (after[620:] > before[620:] + 0.5).all()


def test_a_file_from_before_has_neither_and_scores_as_it_did(detector, wave, tmp_path):
    detector.save(tmp_path / "new.tisat")
    document, tensors = read_artefact(tmp_path / "new.tisat")
    later = ("joint.shapes", "joint.when", "neighbour.still")
    write_artefact(tmp_path / "old.tisat", document, {name: one for name, one in tensors.items() if name not in later})
    new, old = load(tmp_path / "new.tisat"), load(tmp_path / "old.tisat")
    np.testing.assert_array_equal(new.points(wave[:400]), detector.points(wave[:400]))
    assert old._views["joint"].shapes.size == 0
    assert old._views["neighbour"].still.tolist() == [0.0]
    errors = old._errors(old._scaled(wave[:400]), np.arange(120, 400))
    found = old._views["joint"].contributions(Scene(old._scaled(wave[:400]), np.arange(120, 400), errors))
    centred = errors - old._views["joint"].mean
    np.testing.assert_allclose(found, centred**2 * old._views["joint"].precision[0, 0])


def test_a_short_piece_between_gaps_may_have_no_window_that_is_kept():
    rows = np.random.default_rng(0).standard_normal((9000, 2))
    pieces = [(rows, 20), (rows[:22], 20), (rows, 20)]  # two judged rows between pieces of which one in five is kept
    scenes = [Scene(piece, np.arange(first, len(piece)), piece[first:]) for piece, first in pieces]
    view = Neighbour()
    view.fit(scenes)
    assert len(view.stored) == 4000
    assert np.isfinite(view.own(scenes)).all()
