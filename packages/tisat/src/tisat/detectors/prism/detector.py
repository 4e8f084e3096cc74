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
(scaled); and the logarithm of how much more than usual the leading channel moves, 0 where its level says more. The last three
are for explanations. Beside it stand the deviations ``(C,)`` that tell whether a channel is still different (:mod:`~tisat.detectors.prism.standing`).

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

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tisat.alarms.explanation import Explanation, shares
from tisat.alarms.rules.base import Scored
from tisat.detectors._windows import parts_longer_than
from tisat.detectors.base import Array, Detector, Traits
from tisat.detectors.crossfit import Piece, score_pieces
from tisat.detectors.prism import VIEWS, Scene
from tisat.detectors.prism.answers import answers
from tisat.detectors.prism.filling import conditional_means, filling_weights
from tisat.detectors.prism.forecaster import LINE, errors_of, fit_forecaster, make_forecaster
from tisat.detectors.prism.fusion import OTHERS, RELATIONS, compressed, exponents, fuse, total
from tisat.detectors.prism.line import fit_line, forecasts
from tisat.detectors.prism.modes import REPLACED, Mode, Plan, in_units_of_mode, plan_modes
from tisat.detectors.prism.online import HIGHEST, LOWEST, NOTHING
from tisat.detectors.prism.relations import partners_of, relations_at_once
from tisat.detectors.prism.restoring import check_parts, fresh_views, restored_forecaster, restored_views
from tisat.detectors.prism.standing import Deviating
from tisat.detectors.prism.switches import days_of
from tisat.detectors.prism.touched import touched
from tisat.detectors.prism.units import Units
from tisat.detectors.prism.view import View, blocks_of, level_of, moments, thinned
from tisat.persistence.estimator import document_of
from tisat.utils.parameters import integer, learned, real, value
from tisat.utils.types import AnyArray, Arrays, Flags, Integers, JsonDict, JsonMap

LEVELS_FROM = 4000  # rows of training a view's level is computed from
LEAST_VARIANCE = 1e-4  # of a scaled channel, when one is filled from the others
CONTEXT = max(view.context for view in VIEWS.values())


class Prism(Deviating, Detector):
    """Several views of a series in one detector: forecast errors, neighbours, activity, relations, rhythm.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> wave = np.sin(np.arange(2000)[:, None] / np.array([9.0, 15.0])) + 0.1 * rng.standard_normal((2000, 2))
    >>> test = wave[:500].copy()
    >>> test[300:400, 1] = test[300, 1]  # a sensor that is stuck
    >>> scores = Prism().fit(wave).decision_function(test)
    >>> bool(scores[320:400].min() > np.nanmax(scores[:300]))
    True

    Notes
    -----
    The detector is ours. Its parts are old: a ridge line on the last rows (Hoerl, Kennard 1970), the distance of Mahalanobis
    (1936), the nearest normal window (as in the matrix profile of Yeh et al., ICDM 2016), regression of each channel on the
    others. New: each view is measured from its own normal level, and what they say is summed in logarithms, so that none drowns the others.
    """

    traits: ClassVar[Traits] = Traits(crossfit=5, learns_unseen=True, partial=True, clocked=True)
    _restored_apart: ClassVar[frozenset[str]] = frozenset({"forecaster_"})

    lags: int = integer(100, at_least=3, doc="Rows the forecast of the next one is made from.")
    ridge: float = real(1.0, above=0.0, doc="Penalty on the forecast's weights, as a share of the variance of the inputs.")  # fmt: skip
    forecaster: str = value(LINE, doc="Whose errors the views look at: 'line', or the name of a detector that forecasts the next row ('linear-last', 'tisat'), with its defaults.")  # fmt: skip
    holidays: tuple[str, ...] = value((), doc="Days that are like Sundays, as dates such as '2026-12-25'; used where the series has a clock and operating modes.")  # fmt: skip

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
        days_of(self.holidays)

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
        errors = forecasts(rows, at, self.weights_, self.intercepts_, self.farthest_)
        for some in blocks_of(len(at)):
            np.subtract(rows[at[some]], errors[some], out=errors[some])
        return errors

    def _scene(self, rows: Array, at: Integers, clock: Array | None = None) -> Scene:
        return Scene(rows, at, self._errors(rows, at), clock)

    def _cross_fitted(self, parts: Sequence[Array]) -> list[Array] | None:
        self._decide(parts)
        self._highest = list[Array]()
        other = self._other()
        if other is not None and other.traits.crossfit < 2:
            return None  # expensive to fit: a tail is held out instead
        return super()._cross_fitted(parts)

    # ------------------------------------------------------------------ rows

    def _scaled(self, part: Array) -> Array:
        """Rows in units of the training range, cut off; halved on the way, so that no finite value overflows."""
        scaled = part / 2
        scaled -= self.low_ / 2
        scaled /= self.span_
        np.maximum(scaled, LOWEST, out=scaled)  # np.clip takes longer for one row
        return np.minimum(scaled, HIGHEST, out=scaled)

    def _user(self, scaled: Array) -> Array:
        """Scaled values in the units of the user."""
        return np.asarray(self.low_ + 2.0 * self.span_ * scaled)

    def _filled(self, rows: Array) -> Array:
        """Rows with what is missing replaced by what the rest of the row says."""
        return np.clip(conditional_means(rows, self.middle_, self.covariance_), LOWEST, HIGHEST)

    # ------------------------------------------------------------------ learning

    def _split(self, part: Array) -> tuple[Array, Array]:
        """Values ``(T, C)`` and local times ``(T,)`` of rows, which need not come with the latter."""
        channels = self.n_channels_
        clock = part[:, channels] if part.shape[1] > channels else np.full(len(part), np.nan)
        return part[:, :channels], clock

    def _plan_of(self, parts: Sequence[Array]) -> Plan | None:
        """Whether the series has operating modes that its mode views see, on rows they were not fitted on."""
        long = [self._split(part) for part in parts if len(part) > self._context()]
        scaled = self._learn_scales([values for values, _ in long]) if long else []
        return plan_modes(scaled, [clock for _, clock in long], first=self._context()) if long else None

    def _decide(self, parts: Sequence[Array]) -> None:
        self._plan = self._plan_of(parts)

    def _prepare_fold(self, other: Prism) -> None:
        other._plan = self._plan

    def _learn_from_fold(self, scored: Sequence[Sequence[Array]], other: Prism) -> None:
        self._highest += other._highest_of(scored)

    def _learn_scales(self, parts: Sequence[Array]) -> list[Array]:
        """Scaled parts. Rows to learn from lack nothing."""
        self.low_ = np.min([part.min(axis=0) for part in parts], axis=0)
        half = np.max([part.max(axis=0) for part in parts], axis=0) / 2 - self.low_ / 2
        self.span_ = np.where(half > 0, half, np.maximum(np.abs(self.low_), 1.0) / 2)
        scaled = [self._scaled(part) for part in parts]
        self.middle_, products = moments(scaled)
        self.covariance_ = products + LEAST_VARIANCE * np.eye(len(products))
        return scaled

    def _fit(self, parts: Sequence[Array]) -> None:
        context = self._context()
        parts = parts_longer_than(context, parts, whose=type(self).__name__)
        if not hasattr(self, "_plan"):
            self._plan = self._plan_of(parts)
        clocks = [self._split(part)[1] for part in parts]
        scaled = self._learn_scales([self._split(part)[0] for part in parts])
        channels = self.n_channels_
        self.weights_ = np.zeros((self.lags - 1, channels))
        self.intercepts_, self.farthest_ = np.zeros((2, channels))
        self.forecaster_ = None if self.forecaster == LINE else fit_forecaster(self.forecaster, scaled, self.channels_)
        if self.forecaster_ is None:
            self.weights_, self.intercepts_, self.farthest_ = fit_line(scaled, lags=self.lags, ridge=self.ridge)
        scenes = [
            self._scene(part, np.arange(context, len(part)), clock) for part, clock in zip(scaled, clocks, strict=True)
        ]
        self._take_views(fresh_views(self._plan, days_of(self.holidays)))
        for view in self._views.values():
            view.fit(scenes)
        relations: Any = self._views["relations"]
        relations.learn_without(scenes, filling_weights(self.covariance_))
        few = thinned(scenes, LEVELS_FROM)
        heard = self._heard
        own = [view.own(few) if name in heard else np.zeros((1, channels)) for name, view in self._views.items()]
        self._units = Units()
        if self._modes:
            own = in_units_of_mode(self._modes[0], own, few)
        else:
            own = self._units.fit(list(self._views.values()), scenes, few, own, self._plan)
        self.levels_ = np.array([level_of(view, one) for view, one in zip(self._views.values(), own, strict=True)])
        self.ordinary_ = np.array([one.mean(axis=0) if len(one) else np.zeros(channels) for one in own])
        self.exponents_ = np.ones(len(self._views))
        del self._plan

    def _keep_normal(self, parts: Sequence[Array], tails: Sequence[Piece], cross_fitted: list[Array] | None) -> None:
        highest = vars(self).pop("_highest", None)  # of the folds
        if cross_fitted is None:
            highest = self._highest_of([[one] for one in score_pieces(self._whole_points, tails)])
        if highest is not None:
            self._learn_limits(highest)
        super()._keep_normal(parts, tails, cross_fitted)
        self.exponents_ = exponents(self.normal_[:, : len(self._views)])

    # ------------------------------------------------------------------ scoring

    def _points(self, part: Array) -> Array:
        return self._for_calibration(self._whole_points(part))

    def _answers(self, windows: Array) -> Array:
        return answers(self, windows)

    def _whole_points(self, part: Array) -> Array:
        context = self._context()
        points = np.full((len(part), len(self._views) + 3 * self.n_channels_ + 1), np.nan)
        if len(part) > context:
            points[context:] = self._points_at(part, np.arange(context, len(part)))
        return points

    def _points_at(self, part: Array, at: Integers) -> Array:
        """Points ``(n, m)`` of the rows ``at``, each with its context before it."""
        values, clock = self._split(part)
        scaled = self._scaled(values)
        missing = np.isnan(scaled)
        lacking = bool(missing.any())
        rows = self._filled(scaled) if lacking else scaled
        gaps = missing if lacking or (self.knows_calendar and bool(np.isnan(clock[at]).any())) else None
        errors = self._errors(rows, at)
        points = np.empty((len(at), len(self._views) + 3 * self.n_channels_ + 1))
        for some in blocks_of(len(at)):
            points[some] = self._look(Scene(rows, at[some], errors[some], clock), gaps)
        return points

    def _look(self, scene: Scene, missing: Flags | None) -> Array:
        """Points ``(n, m)`` of the rows of a scene; ``missing`` (T, C) says which rows were filled."""
        views, rows = list(self._views.values()), scene.rows[scene.at]
        n, channels = rows.shape
        unknown, lacking, errors = NOTHING, rows, scene.errors
        if missing is not None:
            unknown = touched(missing, scene, views, self._reach())
            lacking = np.where(missing[scene.at], np.nan, rows)
            joint: Any = self._views["joint"]
            replaced = joint.expected(errors, unknown[:, list(VIEWS).index("joint")])
            scene = Scene(scene.rows, scene.at, replaced, scene.clock)
        partners, modes = self._listened, self._modes
        inputs = modes[0].inputs(scene) if modes else np.empty((0, 0))
        signed = {view.name: view.deviations_of(inputs) for view in modes}
        signed |= {view.name: view.deviations(scene) for _, view in partners if view.signed and view.name not in signed}
        parts = np.zeros((n, len(views), channels))
        other_view, aside = OTHERS, RELATIONS
        if modes:
            other_view, aside = np.append(OTHERS, np.arange(len(VIEWS), len(views))), len(VIEWS)
            cells = modes[0].cells(inputs)
            beside, lively = (signed[view.name] * view.spread[cells] for view in modes)
            beside = modes[0].at_once(inputs, rows, beside)
        else:
            if missing is not None:
                signed["relations"] /= np.sqrt(1.0 + unknown[:, RELATIONS] @ self._views["relations"].arrays()["wider"])
            beside, lively = (signed[name] * self._views[name].arrays()["spread"] for name in ("relations", "activity"))
        for v, view in partners:
            parts[:, v] = signed[view.name] ** 2 if view.signed else view.contributions(scene)
        if modes:
            parts[:, : len(VIEWS)] /= modes[0].units[cells]
        self._units.divide(parts, scene)
        self._blame(parts[:, aside], signed[self._standing.name], unknown[:, aside] if missing is not None else None)
        points = np.empty((n, len(views) + 3 * channels + 1))
        fuse(
            parts, unknown, self.ordinary_, self.levels_, self.exponents_, lacking, errors, beside, lively, other_view, aside, np.empty((3, len(views))), points
        )  # fmt: skip
        placed = [len(views) + channels + c for c, _ in self.switches]  # nobody expects a switch beyond its positions
        points[:, placed] = np.clip(points[:, placed], 0.0, 1.0)
        points[:, len(views) + 2 * channels + 1 :] = signed[self._standing.name]
        if missing is not None:
            points[:, len(views) + 2 * channels + 1 :][unknown[:, views.index(self._standing)]] = np.nan
        return points

    def _context(self) -> int:
        return max(self._reach(), CONTEXT)

    def _minimum_rows(self) -> int:
        return self._context() + 2

    # ------------------------------------------------------------------ from points to scores

    def _take_views(self, views: dict[str, View]) -> None:
        """Look through these views: through all, or without those that mode views replace."""
        self._views = views
        self._fault_patterns = None
        self._windowed: tuple[object, ...] | None = None  # what single windows are looked at with
        self._heard = [name for name in views if "mode" not in views or name not in REPLACED]
        self._places = [list(views).index(name) for name in self._heard]
        self._listened = [(place, views[name]) for place, name in zip(self._places, self._heard, strict=True)]
        self._modes = [view for _, view in self._listened if isinstance(view, Mode)]
        self._momentary = tuple(v for v, name in enumerate(self._heard) if views[name].momentary)

    def _view_scores(self, points: Array) -> Array:
        """The scores ``(T, V)`` of each view: 0 at its normal level, -1 at its normal median; restless ones compressed."""
        scores = compressed(points[:, : len(self._views)], self.exponents_)
        return scores if len(self._places) == len(self._views) else scores.take(self._places, axis=1)

    def score_points(self, points: Array) -> Scored:
        """Scores of points and of each view; the views of forecast errors and of shapes are momentary."""
        views = self._view_scores(points)
        return Scored(points, total(views), views, self._momentary)

    def aggregate(self, points: Array) -> Array:
        """Scores ``(T,)``: the sum over views of ``log(1 + height)``, the height being 1 at the normal level."""
        return total(self._view_scores(points))

    def _amounts(self, points: Array) -> Array:
        """What each channel adds to the evidence of points ``(n, C)``."""
        return points[:, len(self._views) : len(self._views) + self.n_channels_]

    def _explain(self, row: Array, point: Array) -> Explanation:
        names, channels = list(self._views), self.n_channels_
        attribution, expected = point[len(names) :][: 2 * channels].reshape(2, channels)
        varied = self.middle_ > 0.0  # what was constant is expected to stay; the rest not to leave its range far behind
        expected, scores = np.clip(expected, -0.5 * varied, 1.5 * varied), self._view_scores(point[None])[0]
        loudest = self._heard[int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))]
        livelier = float(point[len(names) + 2 * channels])
        if self._views[loudest].kind == "stuck" and livelier == 0.0:
            loudest = self._standing.name
        elif self._views[loudest].kind == "stuck" and livelier > 0.0 and not varied[np.argmax(attribution)]:
            loudest = "error"  # what was constant and is not has another value
        kind = self._views[loudest].kind
        if kind == "stuck" and livelier > 0.0:
            kind = "unusually noisy"
        if loudest == "joint" and channels == 1:
            kind = VIEWS["neighbour"].kind  # a shape; see Joint
        compared = self._views[loudest if loudest in ("relations", "mode") else "error"]
        if loudest == "relations":
            expected = relations_at_once(compared.arrays(), self._scaled(row), expected)
        return Explanation(
            kind, shares(attribution), row, self._user(expected), 2.0 * self.span_ * np.atleast_2d(compared.arrays()["spread"])[-1],
            "contribution to each view", partners_of(self._views["relations"].arrays()["weights"]),
            math.exp(livelier) if kind == "unusually noisy" else None,
        )  # fmt: skip

    # ------------------------------------------------------------------ on disk

    def _state(self) -> tuple[JsonDict, Arrays]:
        plain, tensors = super()._state()
        plain.pop("forecaster_", None)
        if self.forecaster_ is not None:
            plain["forecaster"], arrays = document_of(self.forecaster_)
            tensors.update({f"forecaster.{name}": array for name, array in arrays.items()})
        tensors.update(self._units.arrays())
        for name, view in self._views.items():
            tensors.update({f"{name}.{attribute}": array for attribute, array in view.arrays().items()})
        return plain, tensors

    def _restore(self, plain: JsonMap, tensors: Mapping[str, AnyArray]) -> None:
        rest = dict(plain)
        document = rest.pop("forecaster", None)
        self.forecaster_ = restored_forecaster(self.forecaster, document, tensors, rest["channels_"])
        super()._restore(rest, {name: array for name, array in tensors.items() if "." not in name})
        self._take_views(restored_views(tensors, self.n_channels_))
        self._units = Units.restored(tensors, self.n_channels_)
        check_parts(self, self._views)

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"lags": 20}
