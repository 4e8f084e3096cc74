"""Prism: several views of a series, each in units of its own normal level, side by side.

One-step forecast error cannot see a stuck sensor, a drift, a changed rhythm. Prism looks at the same scaled rows through
the views of :mod:`tisat.detectors.prism` and gives, for each row, the score of every view; the excess rule turns
them into one statistic, the sum over views of ``log(1 + S / unit)``, to which agreement counts and no view is loud.

**Units.** Each channel is scaled by its training range and cut off at 4 ranges outside it. The score of a view is the
mean of its contributions over channels, measured from the view's level on the rows it was fitted on: 0 at the level, -1
at the median, and so 1 one such distance above the level. Scores of rows the model has not seen are therefore honest,
in the same unit, and the alarm threshold can be calibrated on them.

**Slow views** (relations, rhythm) see what no other does where they are steady, and chatter where the machine changes from
week to week. Rows the model has not seen tell which: where ``log(1 + s / 0.01)`` of a slow view's score s is above 1 in one
of 200 such rows, its scores above the level are compressed until it is 1 there (:func:`~tisat.detectors.prism.fusion.exponents`). A view that is steady
keeps its word; one that is not must shout.

**A point** ``(V + 2 C + 1,)`` is the V scores; for each channel its part in the evidence and its expected value
(scaled); and how lively (above 0) or quiet the liveliest or quietest channel is. The last three are for explanations.

**Attribution** is taken from the views that look at each channel by itself, in parts of what they say. Relations are heard only
for what they say beyond those together (a level, a drift: nobody else sees it), because a channel whose neighbour is faulty
deviates too; neighbours of whole windows are not heard.

**What is missing.** A channel without a value is filled with what the other channels of the row say (the conditional mean
of a normal distribution), so that views across channels go on. As long as a window holds a filled row of a channel, the
channel counts as usual: its mean contribution in training takes the place of what it says, and what the others say of each
other without it is measured in a wider spread. So the normal level of the evidence, and with it the budget of false alarms,
is about what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tisat.alarms.explanation import Explanation, shares
from tisat.detectors._windows import parts_longer_than
from tisat.detectors.base import NORMAL_QUANTILE, Array, Detector
from tisat.detectors.crossfit import Piece
from tisat.detectors.prism import VIEWS, Scene, View
from tisat.detectors.prism.forecaster import LINE, errors_of, fit_forecaster, make_forecaster
from tisat.detectors.prism.fusion import OTHERS, RELATIONS, compressed, exponents, fuse
from tisat.detectors.prism.line import fit_line, forecasts
from tisat.detectors.prism.view import thinned
from tisat.errors import ArtefactError
from tisat.utils.parameters import integer, learned, real, value
from tisat.utils.types import Flags, Integers

LOWEST, HIGHEST = -4.0, 5.0  # scaled values are cut off here: 4 training ranges outside the training range
LEVELS_FROM = 4000  # rows of training a view's level is computed from
BLOCK = 2000  # rows looked at together: their arrays stay near the processor
LEAST_VARIANCE = 1e-4  # of a scaled channel, when one is filled from the others
NOTHING = np.zeros((0, 0, 0), dtype=np.bool_)
CONTEXT = max(view.context for view in VIEWS.values())
LEAST_LEVEL = 1e-9  # a view below this never moved in training


class Prism(Detector):
    """Several views of a series in one detector: forecast errors, neighbours, activity, relations, rhythm.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> wave = np.sin(np.arange(2000)[:, None] / np.array([9.0, 15.0])) + 0.1 * rng.standard_normal((2000, 2))
    >>> test = wave[:500].copy()
    >>> test[300:400, 1] = test[300, 1]  # a sensor that is stuck
    >>> detector = Prism().fit(wave)
    >>> scores = detector.decision_function(test)
    >>> bool(scores[320:400].min() > np.nanmax(scores[:300]))
    True

    Notes
    -----
    The detector is ours. Its parts are old: a ridge line on the last rows (Hoerl, Kennard 1970), the distance of Mahalanobis
    (1936), the nearest normal window (as in the matrix profile of Yeh et al., ICDM 2016), regression of each channel on the
    others. What it adds is that each view is measured from its own normal level, and that what they say is summed in
    logarithms, so that no view can drown the others.
    """

    crossfit: ClassVar[int] = 5
    learns_unseen: ClassVar[bool] = True  # how restless its slow views are
    partial: ClassVar[bool] = True
    _restored_apart: ClassVar[frozenset[str]] = frozenset({"forecaster_"})

    lags: int = integer(100, at_least=3, doc="Rows the forecast of the next one is made from.")
    ridge: float = real(
        1.0, above=0.0, doc="Penalty on the forecast's weights, as a share of the variance of the inputs."
    )
    forecaster: str = value(
        LINE,
        doc="Whose errors the views look at: 'line', or the name of a detector that forecasts the next row ('linear-last', 'tisat'), with its defaults.",
    )

    low_: Array = learned("C")  # (C,) least training value
    span_: Array = learned("C")  # (C,) half the training range
    weights_: Array = learned("lags - 1, C")  # (lags - 1, C) of the forecast
    intercepts_: Array = learned("C")  # (C,)
    farthest_: Array = learned("C")  # (C,) largest difference the forecast was made from
    middle_: Array = learned("C")  # (C,) mean of the scaled rows
    covariance_: Array = learned("C, C")  # (C, C) of the scaled rows
    ordinary_: Array = learned("V, C")  # (V, C): mean contribution of each channel to each view on training rows
    levels_: Array = learned("V, 2")  # (V, 2): median and level of each view on training rows
    exponents_: Array = learned("V")  # (V,): 1; less for slow views that are restless on rows the model has not seen
    forecaster_: Detector | None = learned()  # fitted, in the place of the line

    # ------------------------------------------------------------------ the forecaster

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._other()

    def _other(self) -> Detector | None:
        """What stands in the place of the line: fitted if this is."""
        if self.forecaster == LINE:
            return None
        return getattr(self, "forecaster_", None) or make_forecaster(self.forecaster)

    def _reach(self) -> int:
        """Rows before a row that its forecast looks at."""
        other = self._other()
        return int(self.lags) if other is None else other._context() or 0

    def _errors(self, rows: Array, at: Integers) -> Array:
        if self.forecaster_ is not None:
            return errors_of(self.forecaster_, rows, at)
        return np.asarray(rows[at] - forecasts(rows, at, self.weights_, self.intercepts_, self.farthest_))

    def _scene(self, rows: Array, at: Integers) -> Scene:
        return Scene(rows, at, self._errors(rows, at))

    def _cross_fitted(self, parts: Sequence[Array]) -> list[Array] | None:
        other = self._other()
        if other is not None and other.crossfit < 2:
            return None  # expensive to fit: a tail is held out instead
        return super()._cross_fitted(parts)

    # ------------------------------------------------------------------ rows

    def _scaled(self, part: Array) -> Array:
        """Rows in units of the training range, cut off; halved on the way, so that no finite value overflows."""
        return np.clip((part / 2 - self.low_ / 2) / self.span_, LOWEST, HIGHEST)

    def _user(self, scaled: Array) -> Array:
        """Scaled values in the units of the user."""
        return np.asarray(self.low_ + 2.0 * self.span_ * scaled)

    def _filled(self, rows: Array) -> Array:
        """Rows with what is missing replaced by what the rest of the row says."""
        missing = np.isnan(rows)
        if not missing.any():
            return rows
        rows = rows.copy()
        some = np.flatnonzero(missing.any(axis=1))
        patterns, which = np.unique(missing[some], axis=0, return_inverse=True)
        for number, gone in enumerate(patterns):
            here = some[which.ravel() == number]
            known = ~gone
            guess = np.broadcast_to(self.middle_[gone], (len(here), int(gone.sum())))
            if known.any():
                solved = np.linalg.solve(self.covariance_[np.ix_(known, known)], self.covariance_[np.ix_(known, gone)])
                guess = self.middle_[gone] + (rows[np.ix_(here, np.flatnonzero(known))] - self.middle_[known]) @ solved
            rows[np.ix_(here, np.flatnonzero(gone))] = np.clip(guess, LOWEST, HIGHEST)
        return rows

    def _fills(self) -> Array:
        """Weights ``(C, C)`` with which each channel is filled from all others, 0 for itself."""
        precision = np.linalg.inv(self.covariance_)
        weights = -precision / np.diag(precision)[:, None]
        np.fill_diagonal(weights, 0.0)
        return np.asarray(weights)

    # ------------------------------------------------------------------ learning

    def _fit(self, parts: Sequence[Array]) -> None:
        context = self._context()
        parts = parts_longer_than(context, parts, whose=type(self).__name__)
        everything = np.concatenate(parts)
        self.low_ = np.nanmin(everything, axis=0)
        half = np.nanmax(everything, axis=0) / 2 - self.low_ / 2
        self.span_ = np.where(half > 0, half, np.maximum(np.abs(self.low_), 1.0) / 2)
        scaled = [self._scaled(part) for part in parts]
        rows = np.concatenate(scaled)
        known = rows[~np.isnan(rows).any(axis=1)]
        self.middle_ = np.nanmean(rows, axis=0)
        centred = known - known.mean(axis=0) if len(known) else np.zeros((1, rows.shape[1]))
        self.covariance_ = centred.T @ centred / len(centred) + LEAST_VARIANCE * np.eye(rows.shape[1])
        scaled = [np.ascontiguousarray(self._filled(part)) for part in scaled]
        self.weights_ = np.zeros((self.lags - 1, rows.shape[1]))
        self.intercepts_, self.farthest_ = np.zeros((2, rows.shape[1]))
        self.forecaster_ = None if self.forecaster == LINE else fit_forecaster(self.forecaster, scaled, self.channels_)
        if self.forecaster_ is None:
            self.weights_, self.intercepts_, self.farthest_ = fit_line(scaled, lags=self.lags, ridge=self.ridge)
        scenes = [self._scene(part, np.arange(context, len(part))) for part in scaled]
        self._views = {name: view() for name, view in VIEWS.items()}
        for view in self._views.values():
            view.fit(scenes)
        relations: Any = self._views["relations"]
        relations.learn_without(scenes, self._fills())
        few = thinned(scenes, LEVELS_FROM)
        own = [view.own(few) for view in self._views.values()]
        self.levels_ = np.array([self._level(view, one) for view, one in zip(VIEWS.values(), own, strict=True)])
        self.ordinary_ = np.array([one.mean(axis=0) if len(one) else np.zeros(rows.shape[1]) for one in own])
        self.exponents_ = np.ones(len(VIEWS))

    def _keep_normal(self, parts: Sequence[Array], tails: Sequence[Piece], cross_fitted: list[Array] | None) -> None:
        super()._keep_normal(parts, tails, cross_fitted)
        self.exponents_ = exponents(self.normal_[:, : len(VIEWS)])

    @staticmethod
    def _level(view: type[View], own: Array) -> tuple[float, float]:
        """Median and level of a view's own scores; where rare jumps are all there is, the mean is the larger unit."""
        scores = own.mean(axis=1)
        if len(scores) == 0:
            return 0.0, 1.0
        median = float(np.median(scores))
        level = max(float(np.quantile(scores, NORMAL_QUANTILE)), float(scores.mean()))
        height = view.reach * (level - median)
        return median, median + (height if height > LEAST_LEVEL else 1.0)

    # ------------------------------------------------------------------ scoring

    def _points(self, part: Array) -> Array:
        context, channels = self._context(), part.shape[1]
        points = np.full((len(part), len(VIEWS) + 2 * channels + 1), np.nan)
        if len(part) <= context:
            return points
        scaled = self._scaled(part)
        missing = np.isnan(scaled)
        rows = np.ascontiguousarray(self._filled(scaled))
        at = np.arange(context, len(part))
        gaps = missing if missing.any() else None
        errors = self._errors(rows, at)
        for first in range(0, len(at), BLOCK):
            some = slice(first, first + BLOCK)
            points[at[some]] = self._look(Scene(rows, at[some], errors[some]), gaps)
        return points

    def _look(self, scene: Scene, missing: Flags | None) -> Array:
        """Points ``(n, m)`` of the rows of a scene; ``missing`` (T, C) says which rows were filled."""
        views, seen = list(self._views.values()), scene.rows[scene.at]
        n, channels = seen.shape
        unknown, gone, errors = NOTHING, seen, scene.errors
        if missing is not None:
            unknown = np.stack([self._touched(missing, scene.at, view) for view in views], axis=1)
            gone = np.where(missing[scene.at], np.nan, seen)
            joint: Any = self._views["joint"]
            scene = Scene(scene.rows, scene.at, joint.expected(errors, unknown[:, list(VIEWS).index("joint")]))
        signed = {view.name: view.deviations(scene) for view in views if view.signed}
        if missing is not None:
            signed["relations"] /= np.sqrt(1.0 + unknown[:, RELATIONS] @ self._views["relations"].arrays()["wider"])
        parts = np.empty((n, len(views), channels))
        for v, view in enumerate(views):
            parts[:, v] = signed[view.name] ** 2 if view.signed else view.contributions(scene)
        points = np.empty((n, len(views) + 2 * channels + 1))
        aside = signed["relations"] * self._views["relations"].arrays()["spread"]
        fuse(
            parts, unknown, self.ordinary_, self.levels_, self.exponents_, gone, errors, aside, signed["activity"], OTHERS, RELATIONS, points
        )  # fmt: skip
        return points

    def _touched(self, missing: Flags, at: Integers, view: View) -> Flags:
        """Where the rows a view looks at hold a filled value of the channel itself ``(n, C)``."""
        context = max(view.context, self._reach() if view.name in ("error", "joint") else 0)
        so_far = np.concatenate([np.zeros((1, missing.shape[1]), dtype=np.int64), np.cumsum(missing, axis=0)])
        return np.asarray(so_far[at + 1] - so_far[at - context] > 0)

    def _context(self) -> int:
        return max(self._reach(), CONTEXT)

    def _minimum_rows(self) -> int:
        return self._context() + 2

    # ------------------------------------------------------------------ from points to scores

    @property
    def n_views(self) -> int:
        """V."""
        return len(VIEWS)

    @property
    def momentary_views(self) -> tuple[int, ...]:
        """The views of forecast errors and of shapes."""
        return tuple(v for v, view in enumerate(VIEWS.values()) if view.momentary)

    def views(self, points: Array) -> Array:
        """The scores ``(T, V)`` of each view: 0 at its normal level, -1 at its normal median; restless ones compressed."""
        return compressed(points[:, : len(VIEWS)], self.exponents_)

    def aggregate(self, points: Array) -> Array:
        """Scores ``(T,)``: the sum over views of ``log(1 + height)``, the height being 1 at the normal level."""
        heights = np.maximum(self.views(points) + 1.0, 0.0)
        known = ~np.isnan(heights)
        total = np.where(known, np.log1p(np.where(known, heights, 0.0)), 0.0).sum(axis=1)
        return np.where(known.any(axis=1), total, np.nan)

    def _explain(self, row: Array, point: Array) -> Explanation:
        names, channels = list(VIEWS), self.n_channels_
        _, attribution, expected = np.split(point[:-1], [len(names), len(names) + channels])
        scores = self.views(point[None])[0]
        loudest = names[int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))]
        kind = "restless" if loudest == "activity" and point[-1] > 0 else VIEWS[loudest].kind
        if loudest == "joint" and channels == 1:
            kind = VIEWS["neighbour"].kind  # a shape; see Joint
        spread = self._views["relations" if loudest == "relations" else "error"].arrays()["spread"]
        return Explanation(
            kind, shares(attribution), row, self._user(expected), 2.0 * self.span_ * spread, "contribution to each view"
        )

    # ------------------------------------------------------------------ on disk

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        plain, tensors = super()._state()
        plain.pop("forecaster_", None)
        if self.forecaster_ is not None:
            plain["forecaster"], arrays = self.forecaster_.document()
            tensors.update({f"forecaster.{name}": array for name, array in arrays.items()})
        for name, view in self._views.items():
            tensors.update({f"{name}.{attribute}": array for attribute, array in view.arrays().items()})
        return plain, tensors

    def _restore(self, plain: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        rest = dict(plain)
        self.forecaster_, document = None, rest.pop("forecaster", None)
        if document is not None:
            mine = {name[11:]: array for name, array in tensors.items() if name.startswith("forecaster.")}
            if document["detector"] != self.forecaster:
                raise ArtefactError("The forecaster in a file of Prism must be the one its parameters name. It is not.")
            self.forecaster_ = type(make_forecaster(self.forecaster)).from_document(document, mine, path="forecaster")
            if self.forecaster_.channels_ != tuple(rest["channels_"]):
                raise ArtefactError("The forecaster in a file of Prism must have its channels. It does not.")
        elif self.forecaster != LINE:
            raise ArtefactError("A file of Prism must hold the forecaster its parameters name. It does not.")
        super()._restore(rest, {name: array for name, array in tensors.items() if "." not in name})
        self._views = {name: view() for name, view in VIEWS.items()}
        for name, view in self._views.items():
            there = (one for one in view.learned if one not in view.added or f"{name}.{one}" in tensors)
            mine = {attribute: tensors[f"{name}.{attribute}"] for attribute in there}
            view.restore(mine, self.n_channels_)
        fits = (
            len(self.ordinary_) == len(VIEWS)
            and self.levels_.shape == (len(VIEWS), 2)
            and self.exponents_.shape == (len(VIEWS),)
        )
        fits = fits and bool(((self.exponents_ > 0) & (self.exponents_ <= 1)).all())
        if not fits or self.weights_.shape != (self.lags - 1, self.n_channels_):
            raise ArtefactError("The views and the forecast of a model file must fit together. They do not.")

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"lags": 20}
