"""The mode views: each channel against its expected value, and its expected activity, in the present operating mode.

Expected is what a ridge regression and boosted trees make of the other channels (means over 10, 20 and 60 rows), of the
rows since the last switch and, where the series has a clock, of the time of day and the day of the week. A deviation is
measured in the spread that is usual so many rows after a switch: a stop that training has seen dozens of times is
normal, in the rows after it as well. Where they are taken they replace the views that compare channels with each other
whatever the mode (multivariate residual, pattern, broken correlation), and the others are measured per time since a switch.

The views are **taken only where they help**: where some channel switches between few values (:func:`any_tells_mode`),
:func:`plan_modes` fits them on two thirds of the rows, in blocks, and measures the error on the rest against that of the regression
alone. Where that falls by less than a quarter the views stay as they are, and are measured per time since a switch only
(:mod:`tisat.detectors.prism.transitions`): a switch is no jump that nobody expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tisat.detectors.base import Array
from tisat.detectors.prism import VIEWS
from tisat.detectors.prism.schedule import scheduled
from tisat.detectors.prism.switches import DAY, MOST_SWITCHES, any_tells_mode, calendar_of, switching
from tisat.detectors.prism.transitions import EDGES, units_of
from tisat.detectors.prism.trees import Forest, boost
from tisat.detectors.prism.view import Scene, View, rare_unit, thinned
from tisat.errors import ArtefactError
from tisat.utils.compiled import compiled
from tisat.utils.types import AnyArray, Flags, Integers

LONG, SMOOTH, SHORT = 60, 20, 10  # rows over which the others are averaged
LEARNED_FROM = 5000  # rows the models are fitted on
OTHERS = 10  # channels the trees of one channel may use, besides those that switch
MOST_TREES = 16  # levels and activities that get trees: where the error falls most
RIDGE = 1e-3  # penalty, as a share of the mean variance of the inputs
LEAST_STEP = 1e-3  # of the training range
PRIOR = 50.0  # rows that the overall spread counts for in each cell
BLOCKS = 12  # of training rows, every third held out to decide
TESTED = 16  # channels of which it is found out whether they get trees
HELPS = 0.75  # the ratio of errors, a geometric mean over channels, from which on the views are taken
USED = 0.9  # the ratio that is worth trees for one channel
NOT_SCORED = 1e9  # a spread at which nothing is a deviation


@compiled()
def summaries(rows: Array, at: Integers, switches: Integers, least: float, out: Array) -> None:  # pragma: no cover
    """Means, logarithms of the activity and rows since each switch: ``out`` (n, 4 C + K + 1)."""
    channels = rows.shape[1]
    for i in range(len(at)):
        t, row = at[i], out[i]
        row[: 4 * channels] = 0.0
        for j in range(LONG):
            now = rows[t - j]
            for c in range(channels):
                row[2 * channels + c] += now[c]
            if j < SMOOTH:
                before = rows[t - j - 1]
                for c in range(channels):
                    row[c] += now[c]
                    row[3 * channels + c] += (now[c] - before[c]) ** 2
            if j < SHORT:
                for c in range(channels):
                    row[channels + c] += now[c]
        for c in range(channels):
            row[c] /= SMOOTH
            row[channels + c] /= SHORT
            row[2 * channels + c] /= LONG
            row[3 * channels + c] = 0.5 * np.log(row[3 * channels + c] / SMOOTH + least * least)
        nearest = float(LONG)
        for k in range(len(switches)):
            c, since = switches[k], float(LONG)
            for j in range(LONG):
                if rows[t - j, c] != rows[t - j - 1, c]:
                    since = float(j)
                    break
            row[4 * channels + k] = since
            nearest = min(nearest, since)
        row[4 * channels + len(switches)] = nearest


@dataclass(frozen=True)
class Plan:
    """What was found out about the modes of a series before its views are fitted."""

    switches: Integers  # (K,) channels
    calendar: bool
    trees: Flags  # (2, C) which targets are worth trees
    worse: Array  # (2, C) how much larger errors are on rows that the model has not seen
    times: Array  # slots of the week at which the series jumps
    modes: bool = True  # whether the mode views are taken; otherwise only switches are known


class Mode(View):
    """Squared deviation of each channel's mean over 20 rows from what is expected of it in the present mode.

    Sees: a level, a drift, a broken correlation, a run on a Sunday; a valve that does not do what the rest asks for.
    Blind to: a fault shorter than a few rows; work at an hour at which training has never seen any.
    """

    name = "mode"
    kind = "broken correlation"
    context: ClassVar[int] = LONG
    reach: ClassVar[float] = 2.0
    signed: ClassVar[bool] = True
    of: ClassVar[int] = 0  # what is expected: the level, 1: the activity
    least: ClassVar[float] = 0.004  # spread
    learned: ClassVar[dict[str, tuple[str, ...]]] = {
        "switches": ("K",), "calendar": ("one",), "holidays": ("days",), "weights": ("inputs", "C"), "intercepts": ("C",),
        "nodes": ("nodes", "five"), "roots": ("trees",), "first": ("targets",), "spread": ("cells", "C"),
        "units": ("cells", "views", "C"), "limits": ("C",),
    }  # fmt: skip
    added: ClassVar[tuple[str, ...]] = ("limits",)

    switches: Array  # (K,) channels
    calendar: Array  # (1,) 1: the time of day and the day of the week are known
    holidays: Array  # days since 1970
    weights: Array  # (4 C, C) of the regression, 0 for the channel itself
    intercepts: Array  # (C,)
    nodes: Array  # of the trees, with roots and first: see Forest
    roots: Array
    first: Array
    spread: Array  # (cells, C)
    units: Array  # (cells, V, C): by how much the other views' contributions are larger this long after a switch
    limits: Array  # (C,) largest normal mean deviation over 40 rows, in spreads; 0: unknown

    def __init__(self, plan: Plan | None = None, holidays: Array | None = None) -> None:
        self.plan = plan
        if plan is not None:
            self.switches = plan.switches.astype(np.float64)
            self.calendar = np.array([float(plan.calendar)])
            self.holidays = np.zeros(0) if holidays is None else holidays

    def inputs(self, scene: Scene) -> Array:
        """What expectations are made of ``(n, 4 C + K + 3)``."""
        channels, switches = scene.rows.shape[1], self.switches.astype(np.int64)
        own = np.empty((len(scene.at), 4 * channels + len(switches) + 1))
        summaries(scene.rows, scene.at, switches, LEAST_STEP, own)
        clock = np.full(len(scene.at), np.nan)
        if self.calendar[0] and scene.clock is not None:
            clock = scene.clock[scene.at]
        return np.concatenate([own, calendar_of(clock, self.holidays)], axis=1)

    def cells(self, inputs: Array) -> Integers:
        """The cell of each row ``(n,)``: how long ago the last switch was; the last cell is calm."""
        return np.digitize(inputs[:, -3], EDGES)

    def _linear(self, inputs: Array, targets: Array) -> None:
        channels = targets.shape[1]
        width = (4 if self.of else 3) * channels
        past = inputs[:, :width]
        mean = past.mean(axis=0)
        centred = past - mean
        products = centred.T @ centred / len(centred)
        across = centred.T @ (targets - targets.mean(axis=0)) / len(centred)
        penalty = RIDGE * np.trace(products) / len(products) + 1e-9
        self.weights = np.zeros((4 * channels, channels))
        for c in range(channels):
            columns = np.flatnonzero(np.arange(width) % channels != c)
            if len(columns):
                gram = products[np.ix_(columns, columns)]
                gram[np.diag_indices_from(gram)] += penalty
                self.weights[columns, c] = np.linalg.solve(gram, across[columns, c])
        self.intercepts = targets.mean(axis=0) - mean @ self.weights[:width]

    def _line(self, inputs: Array) -> Array:
        channels = len(self.intercepts)
        return np.asarray(inputs[:, : 4 * channels] @ self.weights + self.intercepts)

    def _features(self, c: int, inputs: Array) -> Integers:
        """The columns that the trees of a channel may use: those of the others that tell most, switches and the calendar."""
        channels, groups = len(self.intercepts), 4 if self.of else 3
        told = (np.abs(self.weights[:, c]) * inputs[:, : 4 * channels].std(axis=0)).reshape(4, channels).sum(axis=0)
        told[self.switches.astype(np.int64)] = np.inf
        told[c] = -1.0
        most = [int(j) for j in np.argsort(-told, kind="stable")[: OTHERS + len(self.switches)] if j != c]
        past = [g * channels + j for g in range(groups) for j in most]
        return np.array([*past, *range(4 * channels, inputs.shape[1])], dtype=np.int64)

    def target(self, inputs: Array) -> Array:
        """The level or the activity of each channel ``(n, C)``."""
        channels = (inputs.shape[1] - len(self.switches) - 3) // 4
        return inputs[:, 3 * channels * self.of : (3 * self.of + 1) * channels]

    def fit_inputs(self, inputs: Array, trees: Flags) -> None:
        """Learn what is expected of each channel."""
        targets = self.target(inputs)
        self._linear(inputs, targets)
        rest = targets - self._line(inputs)
        grown = [
            boost(inputs, rest[:, c], self._features(c, inputs)) if trees[c] else [] for c in range(targets.shape[1])
        ]
        self._set_forest(Forest.of(grown))

    def _set_forest(self, forest: Forest) -> None:
        self._forest = forest
        self.nodes, self.roots, self.first = forest.nodes, forest.roots, forest.first

    def beside(self, inputs: Array) -> Array:
        """Value minus expectation ``(n, C)``."""
        return np.asarray(self.target(inputs) - self._line(inputs) - self._forest.predict(inputs))

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal."""
        assert self.plan is not None, "a mode view is fitted by its plan"
        inputs = np.concatenate([self.inputs(scene) for scene in thinned(scenes, LEARNED_FROM)])
        self.fit_inputs(inputs, self.plan.trees[self.of])
        errors, cells = self.beside(inputs) * self.plan.worse[self.of], self.cells(inputs)
        overall = (errors**2).mean(axis=0)
        self.spread = np.empty((len(EDGES) + 1, errors.shape[1]))
        for cell in range(len(self.spread)):
            here = errors[cells == cell]
            self.spread[cell] = np.sqrt(((here**2).sum(axis=0) + PRIOR * overall) / (len(here) + PRIOR) + self.least**2)
        self.spread = self.spread * np.sqrt(rare_unit((errors / self.spread[cells]) ** 2))
        self.limits = np.zeros(errors.shape[1])

    def at_once(self, inputs: Array, rows: Array, beside: Array) -> Array:
        """Value minus expectation ``(n, C)`` of the rows themselves, where that is larger than of their means: a step is not yet in these."""
        channels = rows.shape[1]
        now = rows - inputs[:, :channels]
        for k in range(3):
            columns = slice(k * channels, (k + 1) * channels)
            now -= (rows - inputs[:, columns]) @ self.weights[columns]
        return np.asarray(beside + np.where(now * beside > 0.0, now, 0.0))

    def deviations(self, scene: Scene) -> Array:
        """How far each channel is from what is expected, in its usual spread this long after a switch."""
        return self.deviations_of(self.inputs(scene))

    def deviations_of(self, inputs: Array) -> Array:
        """The same of inputs, which both mode views share."""
        return np.asarray(self.beside(inputs) / self.spread[self.cells(inputs)])

    def restore(self, arrays: Mapping[str, AnyArray], n_channels: int) -> None:
        """Continue from arrays that may come from a file: indices that point nowhere are refused."""
        super().restore(arrays, n_channels)
        forest = Forest(self.nodes, self.roots, self.first)
        whole = self.switches
        good = (
            len(self.calendar) == 1
            and self.weights.shape[0] == 4 * n_channels
            and len(self.spread) == len(EDGES) + 1
            and bool((self.spread > 0).all())
            and len(whole) <= MOST_SWITCHES
            and bool(((whole >= 0) & (whole < n_channels) & (whole == np.floor(whole))).all())
            and forest.check(features=4 * n_channels + len(whole) + 3, targets=n_channels)
        )
        if not good:
            raise ArtefactError(f"The view {self.name!r} of a model file must fit together. It does not.")
        if "units" in self.learned and (
            self.units.shape[:2] != (len(self.spread), len(VIEWS)) or (self.units < 1).any()
        ):
            raise ArtefactError(f"The 'units' of the view {self.name!r} must be at least 1, one per cell and view.")
        self._forest = forest


class ModeActivity(Mode):
    """Squared deviation of the logarithm of each channel's activity over 20 rows from what is expected in the present mode.

    Sees: a sensor that is stuck while the rest moves, a channel that is unusually noisy for its mode, hunting control.
    Blind to: levels and drifts; channels that switch, which the activity view scores. Theirs falls in one row when a
    switch leaves the window, and no expectation learned from a sample of the rows says in which.
    """

    name = "mode activity"
    kind = "stuck"
    of: ClassVar[int] = 1
    learned: ClassVar[dict[str, tuple[str, ...]]] = {
        name: sizes for name, sizes in Mode.learned.items() if name not in ("units", "limits")
    }
    least: ClassVar[float] = 0.1

    def fit(self, scenes: Sequence[Scene]) -> None:
        """Learn what is normal of the channels that do not switch."""
        super().fit(scenes)
        self.spread[:, self.switches.astype(np.int64)] = NOT_SCORED


MODES: dict[str, type[Mode]] = {view.name: view for view in (Mode, ModeActivity)}
REPLACED = ("joint", "neighbour", "relations")  # views whose place they take


def plan_modes(parts: Sequence[Array], clocks: Sequence[Array], *, first: int) -> Plan | None:
    """Find the channels that switch, and whether trees improve expectations on rows they have not seen; None where nothing switches.

    Parameters
    ----------
    parts : sequence of arrays of shape (T_i, C)
        Scaled rows without missing values.
    clocks : sequence of arrays of shape (T_i,)
        Local time in seconds since 1970, NaN where unknown.
    first : int
        Rows at the beginning of each part that are context.
    """
    channels = parts[0].shape[1]
    switches = switching(parts)
    times = np.concatenate(clocks)
    calendar = not np.isnan(times).any() and times[-1] - times[0] >= 2 * DAY
    jumps = scheduled(parts, clocks)
    plan = Plan(switches, calendar, np.ones((2, channels), dtype=np.bool_), np.ones((2, channels)), jumps)
    if channels < 2 or not any_tells_mode(parts, switches):
        return replace(plan, switches=switches[:0], modes=False) if len(jumps) else None
    scenes = [
        Scene(part, np.arange(first, len(part)), np.zeros((max(len(part) - first, 0), 0)), clock)
        for part, clock in zip(parts, clocks, strict=True)
    ]
    few = thinned(scenes, LEARNED_FROM)
    ratios, worse = np.ones((2, 2, channels))
    for view in (Mode(plan), ModeActivity(plan)):
        inputs = np.concatenate([view.inputs(scene) for scene in few])
        if len(inputs) < BLOCKS * SMOOTH:
            return None
        held = (np.arange(len(inputs)) * BLOCKS // len(inputs)) % 3 == 2
        moving = np.flatnonzero(view.target(inputs).std(axis=0) > view.least)
        tested = np.union1d(_some(moving, TESTED), np.intersect1d(moving, switches))
        ratios[view.of], worse[view.of] = _ratios(view, inputs, held, tested)
        if view.of == 0 and not (len(tested) and np.log(ratios[0, tested]).mean() < np.log(HELPS)):
            return replace(plan, modes=False)
    clearest = np.sort(ratios, axis=None)[min(MOST_TREES, ratios.size) - 1]
    return replace(plan, trees=(ratios < USED) & (ratios <= clearest), worse=worse)


def _some(channels: Integers, most: int) -> Integers:
    """At most so many of the channels, evenly spread."""
    if len(channels) <= most:
        return channels
    return np.asarray(channels[np.unique(np.linspace(0, len(channels) - 1, most).astype(np.int64))])


def _ratios(view: Mode, inputs: Array, held: Flags, channels: Integers) -> tuple[Array, Array]:
    """Held-out error with trees over that without, and over the error on the rows fitted ``(C,)``; 1 elsewhere."""
    count = view.target(inputs).shape[1]
    picked = np.zeros(count, dtype=np.bool_)
    picked[channels] = True
    view.fit_inputs(inputs[~held], picked)
    floor = view.least**2
    with_trees, without_trees = ((view.beside(inputs[some]) ** 2).mean(axis=0) + floor for some in (held, ~held))
    plain, plain_seen = (
        ((view.target(inputs[some]) - view._line(inputs[some])) ** 2).mean(axis=0) + floor for some in (held, ~held)
    )
    ratio = np.where(picked, with_trees / plain, 1.0)
    worse = np.where(ratio < USED, with_trees / without_trees, plain / plain_seen)
    return ratio, np.sqrt(np.maximum(worse, 1.0))


def in_units_of_mode(mode: View, own: Sequence[Array], scenes: Sequence[Scene]) -> list[Array]:
    """Learn how much louder each view is after a switch; contributions ``(n, C)`` of training rows in units of that."""
    assert isinstance(mode, Mode), "the mode view knows how long ago a switch was"
    cells = np.concatenate([mode.cells(mode.inputs(scene)) for scene in scenes])
    mode.units = np.ones((len(mode.spread), len(VIEWS), len(mode.intercepts)))
    out = list(own)
    for v in range(len(VIEWS)):
        if len(own[v]) == len(cells):
            mode.units[:, v] = units_of(own[v][:, None], cells)[:, 0]
            out[v] = own[v] / mode.units[cells, v]
    return out
