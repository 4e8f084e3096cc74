"""SPD of trivial baselines on the same labels.

Five trivial baselines: *random* (independent uniform scores: in expectation by closed form, and simulated), *random, rolling maximum* (the same with a
running maximum over ``delta_max / 2``), *always on*, *on/off* (on for ``delta_max``, off for ``delta_max``), and, with several series, *time only* (the share of the other series that are
labelled in the same row: where events of a collection begin in the same rows, a clock finds them without data). The baseline score is
the best of them.
This module does not know any detector; whatever post-processing a detector gets, give the random scores too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tisat.events import labels_from_events
from tisat.metrics import _kernels
from tisat.metrics.pooling import Score
from tisat.metrics.spd import COUNTINGS, score_windows
from tisat.metrics.windows import Delay, Windows, all_windows
from tisat.utils.random import Seed, generator
from tisat.utils.types import Array, Flags, Integers, Labels, Stamps
from tisat.utils.validation import check_choice, check_integer, check_real

# Exceedance probabilities at which the expected curve of the random trivial baseline is computed: dense at both ends, where it bends.
_HALF = np.concatenate([[0.0], np.logspace(-9, np.log10(0.5), 600)])
PROBABILITIES = np.concatenate([_HALF, 1.0 - _HALF[-2::-1]])


@dataclass(frozen=True)
class Baselines:
    """SPD of each trivial baseline on the same labels; ``best`` is the baseline score.

    Each is a :class:`~tisat.metrics.Score`: the pooled value, with ``per_series_mean`` beside it.

    Examples
    --------
    >>> from tisat.metrics import baselines
    >>> baselines(np.repeat([0, 1, 0], [40, 10, 50]), delta_max=5).best > 0
    True
    """

    random: Score  # independent uniform scores, in expectation, by closed form
    random_simulated: Score  # the same, mean over simulations
    random_held: Score  # running maximum over delta_max / 2 of uniform scores, mean over simulations
    always_on: Score  # one alarm that never ends
    on_off: Score  # on for delta_max, off for delta_max
    time_only: Score  # the share of the other series labelled in the same row; NaN with one series

    @property
    def named(self) -> dict[str, Score]:
        """The trivial baselines by the names they are printed under."""
        by_name = {
            "random": self.random,
            "random, simulated": self.random_simulated,
            "random, rolling maximum": self.random_held,
            "always on": self.always_on,
            "on/off": self.on_off,
        }
        return {**by_name, "time only": self.time_only} if len(self.time_only.per_series) > 1 else by_name

    @property
    def best(self) -> float:
        """The baseline score of a pooled SPD: the best trivial baseline's."""
        return max(float(score) for score in self.named.values())

    @property
    def best_per_series_mean(self) -> float:
        """The baseline score of a per-series mean: the best trivial baseline's."""
        return max(score.per_series_mean for score in self.named.values())

    @property
    def best_name(self) -> str:
        """The name of the best trivial baseline, pooled."""
        return max(self.named, key=lambda name: float(self.named[name]))

    def __str__(self) -> str:
        lines = [f"{'baseline score (SPD of a trivial baseline)':24}{'pooled':>10}{'per-series mean':>18}"]
        lines += [f"{name:24}{float(score):10.4f}{score.per_series_mean:18.4f}" for name, score in self.named.items()]
        return "\n".join(lines)


def _expected_false_alarms(windows: Sequence[Windows]) -> Array:
    """E[FP] of independent scores in each series at each probability: a run starts at t, or has lasted a multiple of the stride."""
    expected = np.zeros((len(windows), len(PROBABILITIES)))
    for i, one in enumerate(windows):
        if not one.stride:
            expected[i] = _kernels.expected_raises(one.following, one.outside, PROBABILITIES)
    for stride in {one.stride for one in windows} - {0}:
        which = [i for i, one in enumerate(windows) if one.stride == stride]
        expected[which] = _expected_at_stride([np.flatnonzero(windows[i].outside) for i in which], stride)
    return expected


def _expected_at_stride(outside: Sequence[Integers], stride: int) -> Array:
    p = PROBABILITIES
    if stride == 1:  # every active row is raised
        return np.outer([len(where) for where in outside], p)
    # row t can be the k-th raise of a run begun at t - k stride >= 1, probability p^(k stride + 1) (1 - p), for k < ceil(t / stride);
    # or of a run begun at 0, where there is no row before it: p^(t + 1) if stride divides t
    length = max((-(-int(where[-1]) // stride) + 1 for where in outside if len(where)), default=1)
    terms, starts = np.zeros((2, len(outside), length))
    for i, where in enumerate(outside):
        terms[i] = np.bincount(-(-where // stride), minlength=length)
        starts[i] = np.bincount(where[where % stride == 0] // stride, minlength=length)
    n_terms = np.cumsum(terms, axis=1)
    expected = np.empty((len(outside), len(p)))
    for i, probability in enumerate(p):
        block = probability**stride  # a run lasts another stride
        decay = np.log(block) if block > 0 else -1e300
        reach = length if decay > -1e-6 else min(length, 2 + int(-45 / decay))  # beyond it a power is below rounding
        blocks = np.arange(reach)
        geometric = blocks if block > 1.0 - 1e-15 else np.expm1(decay * blocks) / np.expm1(decay)  # 1 + block + ...
        lasting = terms[:, :reach] @ geometric
        if reach < length:
            lasting += (n_terms[:, -1] - n_terms[:, reach - 1]) / (1.0 - block)
        first = starts[:, :reach] @ np.exp(decay * blocks)
        expected[:, i] = probability * (1 - probability) * lasting + probability * first
    return expected


def _expected_gain(windows: Windows) -> tuple[Array, Array]:
    """The expected delay saved (in delta_max) and the expected number of detected events, at each probability."""
    p = PROBABILITIES
    saved = np.zeros_like(p)
    detected = np.zeros_like(p)
    if windows.in_time:
        for i, ((onset, _), stop) in enumerate(zip(windows.events, windows.stops, strict=True)):
            time_steps = np.arange(onset, stop)
            left = 1 - windows.delay(np.full(len(time_steps), i), time_steps) / windows.delta_max
            for j, value in enumerate(left):
                saved += value * p * (1 - p) ** j
            detected += 1 - (1 - p) ** len(left)
        return saved, detected
    lengths, how_many = np.unique(windows.stops - windows.events[:, 0], return_counts=True)
    cumulative = np.zeros_like(p)
    missed = np.ones_like(p)
    row = 0
    for length, number in zip(lengths.tolist(), how_many.tolist(), strict=True):
        for j in range(row, length):
            cumulative += (1 - j / windows.delta_max) * p * missed
            missed = missed * (1 - p)
        row = length
        saved += number * cumulative
        detected += number * (1 - missed)
    return saved, detected


def _random_closed_form(windows: Sequence[Windows], counting: str) -> Score:
    """SPD of independent scores with E[delay], E[TP] and E[FP] plugged into the curve."""

    def area(parts: Sequence[tuple[Array, Array, Array]], n_events: int) -> float:
        if not n_events:
            return float("nan")
        saved, true_alarms, false_alarms = (sum(column) for column in zip(*parts, strict=True))
        total = np.asarray(true_alarms + false_alarms)
        precision = np.divide(true_alarms, total, out=np.ones_like(total), where=total > 0)
        precision[0] = precision[1]
        return float(np.trapezoid(precision, saved) / n_events)

    gains = [_expected_gain(window) for window in windows]
    if counting == "instance":
        parts = [
            (saved, PROBABILITIES * window.inside.sum(), PROBABILITIES * (~window.inside).sum())
            for (saved, _), window in zip(gains, windows, strict=True)
        ]
    else:
        parts = [(*gain, false) for gain, false in zip(gains, _expected_false_alarms(windows), strict=True)]
    single = [area([part], len(window.events)) for part, window in zip(parts, windows, strict=True)]
    return Score.of(area(parts, sum(len(window.events) for window in windows)), single)


def rolling_maximum(scores: object, windows: Windows) -> Array:
    """The running maximum of ``scores`` over the last ``delta_max / 2`` (at least the row itself)."""
    values = np.asarray(scores, dtype=np.float64)
    time_steps = np.arange(len(values))
    if windows.in_time and windows.ticks is not None:
        first = np.searchsorted(windows.ticks, windows.ticks - windows.delta_max // 2, side="right")
        first = np.minimum(first, time_steps)
    else:
        first = np.maximum(time_steps - max(windows.delta_max // 2, 1) + 1, 0)
    lengths = time_steps - first + 1
    result = np.empty_like(values)
    power, table = 1, values.copy()  # table[t] = maximum of the last `power` rows up to t
    while power <= (lengths.max() if len(lengths) else 0):
        mine = (lengths >= power) & (lengths < 2 * power)
        result[mine] = np.maximum(table[mine], table[first[mine] + power - 1])
        table[power:] = np.maximum(table[power:], table[:-power].copy())
        power *= 2
    return result


def on_off(windows: Windows) -> Flags:
    """An alarm that is on for ``delta_max``, off for ``delta_max``, and so on."""
    return np.asarray((windows.clock // windows.delta_max) % 2 == 0)


def time_only(windows: Sequence[Windows]) -> list[Array]:
    """The scores of a clock: of each row of a series, the share of the other series that are labelled in the same row."""
    longest = max(map(len, windows), default=0)
    labels = [labels_from_events(one.events, length=len(one)).astype(np.float64) for one in windows]
    marked, there = np.zeros(longest), np.zeros(longest)
    for one in labels:
        marked[: len(one)] += one
        there[: len(one)] += 1.0
    return [(marked[: len(one)] - one) / np.maximum(there[: len(one)] - 1.0, 1.0) for one in labels]


def _mean_score(scores: Sequence[Score]) -> Score:
    table = np.array([score.per_series for score in scores])
    return Score.of(float(np.mean([float(score) for score in scores])), table.mean(axis=0).tolist())


def baselines_of(
    windows: Sequence[Windows], *, counting: str, n_simulations: int, rng: np.random.Generator
) -> Baselines:
    """:func:`baselines` on windows that were already made."""
    plain, adjusted = [], []
    for _ in range(n_simulations):
        draws = [rng.random(len(one)) for one in windows]
        still = [rolling_maximum(draw, one) for draw, one in zip(draws, windows, strict=True)]
        plain.append(score_windows(draws, windows, counting=counting))
        adjusted.append(score_windows(still, windows, counting=counting))
    return Baselines(
        random=_random_closed_form(windows, counting),
        random_simulated=_mean_score(plain),
        random_held=_mean_score(adjusted),
        always_on=score_windows([np.zeros(len(one)) for one in windows], windows, counting=counting),
        on_off=score_windows([on_off(one).astype(np.float64) for one in windows], windows, counting=counting),
        time_only=score_windows(time_only(windows), windows, counting=counting)
        if len(windows) > 1
        else Score.of(float("nan"), [float("nan")] * len(windows)),
    )


def baselines(
    y_true: Labels,
    delta_max: Delay,
    *,
    counting: str = "event",
    timestamps: Stamps = None,
    n_simulations: int = 10,
    random_state: Seed = 0,
) -> Baselines:
    """Compute the SPD of each trivial baseline on these labels.

    Parameters
    ----------
    y_true : array of 0 and 1, shape (T,), or a list of them
        Labels: 1 in events.
    delta_max, counting, timestamps
        As in :func:`tisat.metrics.spd_score`.
    n_simulations : int
        How many draws the two simulated trivial baselines are averaged over.
    random_state : int or Generator
        Seed of the draws; 0 by default, so that a table can be printed twice.

    Returns
    -------
    Baseline scores
        NaN throughout where there is no event.

    Examples
    --------
    >>> y_true = ([0] * 95 + [1] * 5) * 10
    >>> f = baselines(y_true, 20)
    >>> round(f.always_on, 3), round(f.on_off, 3), f.best_name
    (0.196, 0.279, 'on/off')
    """
    check_choice(counting, "counting", "baselines", choices=COUNTINGS)
    number = check_integer(n_simulations, "n_simulations", "baselines", minimum=1)
    windows = all_windows(y_true, delta_max, timestamps=timestamps, whose="baselines")
    return baselines_of(
        windows, counting=counting, n_simulations=number, rng=generator(random_state, whose="baselines")
    )


def chance_corrected(score: float, baseline_score: float) -> float:
    """``(score - baseline_score) / (1 - baseline_score)``: 0 is what the best trivial baseline gets, 1 is perfect, below 0 a trivial baseline does better.

    Parameters
    ----------
    score : float
        Score of a detector.
    baseline_score : float
        Score of the best trivial baseline on the same labels.

    Returns
    -------
    float
        0 for the baseline, 1 for perfect, below 0 where the baseline is better.

    Examples
    --------
    >>> chance_corrected(0.46, 0.361) < 0.16
    True
    """
    if isinstance(baseline_score, float) and np.isnan(baseline_score):  # of labels without an event nothing can be said
        return float("nan")
    bound = check_real(baseline_score, "baseline_score", "chance_corrected", at_least=0.0, at_most=1.0)
    return (float(score) - bound) / (1.0 - bound) if bound < 1.0 else float("nan")
