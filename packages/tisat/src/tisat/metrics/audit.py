"""Audit a set of scores: evaluation, sweep over ``delta_max``, misses and false alarms.

The results are sentences, so that nobody has to know what a point adjustment is to learn that a random baseline does as well. It does not
read files and draws nothing: that is done by the command line and by :mod:`tisat.plotting`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tisat.errors import InputError
from tisat.metrics.alarm_counts import count_active
from tisat.metrics.baselines import chance_corrected
from tisat.metrics.curve import spd_curve
from tisat.metrics.evaluation import Evaluation, Row, evaluate
from tisat.metrics.event_f1 import best_event_f1
from tisat.metrics.instance import PrecisionRecall
from tisat.metrics.random_guess import best_random_guess, random_guess
from tisat.metrics.statistics import Interval, few_units
from tisat.metrics.windows import Delay, all_scores, all_stamps, all_windows, parse_duration, series_list
from tisat.utils.html import Printed
from tisat.utils.random import Seed
from tisat.utils.types import JsonDict, Labels, Scores, Stamps
from tisat.utils.validation import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SWEEP = (10, 50, 100, 500, 1000)  # rows; the benchmark's protocol
FACTORS = (0.1, 0.5, 1, 5, 10)  # of a duration
ADJUSTED = "adjusted F1 (oracle)"


@dataclass(frozen=True)
class SweepPoint:
    """SPD and its baseline score at one ``delta_max``."""

    delta_max: Delay
    pooled: float
    per_series_mean: float
    baseline_score: float
    baseline: str

    @property
    def corrected(self) -> float:
        """The chance-corrected pooled SPD."""
        return chance_corrected(self.pooled, self.baseline_score)


@dataclass(frozen=True)
class EventOutcome:
    """One labelled event and what became of it at the threshold."""

    series: str
    start: int
    stop: int
    detected: bool
    delay: float  # rows or seconds; delta_max where missed
    time: str  # of the onset; empty without timestamps


@dataclass(frozen=True)
class FalseAlarm:
    """One alarm raised outside labels and windows."""

    series: str
    time_step: int
    time: str  # empty without timestamps


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Printed):
    """The whole account. ``verdict`` is the summary in words.

    Examples
    --------
    >>> from tisat.metrics import audit
    >>> labels = np.repeat([0, 1, 0], [40, 10, 50])
    >>> audit(labels, np.arange(100.0) % 50, delta_max=5).threshold_source
    'oracle'
    """

    evaluation: Evaluation  # every score beside its baselines
    threshold: float  # at which alarms are counted
    threshold_source: str  # "given", or "oracle": the best event F1, chosen with the labels
    random_baseline: PrecisionRecall  # adjusted scores of an alarm with probability 0.01
    best_random_baseline_probability: float  # of an alarm in a row
    best_random_baseline: PrecisionRecall  # of the probability that suits these labels best
    sweep: tuple[SweepPoint, ...]  # scores over several delta_max
    events: tuple[EventOutcome, ...]  # what came of each
    false_alarms: tuple[FalseAlarm, ...]  # in the order of time
    unknown_share: float  # share of scores that are NaN

    def __str__(self) -> str:
        sentences = "\n".join(f"* {sentence}" for sentence in self.verdict)
        return f"{sentences}\n\n{self.evaluation}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """The SPD curve beside its trivial baselines, on matplotlib axes."""
        return self.evaluation.plot(ax)

    def with_intervals(self, intervals: Mapping[str, Interval]) -> Audit:
        """The same with intervals of its scores, by name: results then rest on them."""
        return replace(self, evaluation=self.evaluation.with_intervals(intervals))

    @property
    def missed(self) -> tuple[EventOutcome, ...]:
        """The events without an alarm in their window."""
        return tuple(event for event in self.events if not event.detected)

    @property
    def verdict(self) -> tuple[str, ...]:
        """The results in words, the popular score first."""
        row = self.evaluation[ADJUSTED]
        chance = f"{row.baseline_score:.2f} ({row.baseline})"
        if row.standing <= 0:
            first = f"PA-F1 {row.pooled:.2f} is what a trivial baseline gets: {chance}."
        else:
            first = f"PA-F1 {row.pooled:.2f} is above a trivial baseline's {chance}, but that score cannot tell a good detector from a lucky one."
        sentences = [sentence for sentence in self.evaluation.verdict if not sentence.startswith("adjusted F1")]
        counts = self.evaluation.counts
        last = [] if counts is None else [f"At threshold {self.threshold:.6g} ({self.threshold_source}): {counts}."]
        if self.unknown_share > 0:
            last.append(f"{100 * self.unknown_share:.1f} % of the scores are NaN and never raise an alarm.")
        few = few_units(self.evaluation.n_events, "event") if row.interval is not None else ""
        return (*([few] if few else []), first, *sentences, *last)

    def to_dict(self) -> JsonDict:
        """Everything but the curve's points, in plain values."""
        evaluation = self.evaluation
        return {
            "n_series": evaluation.n_series,
            "n_rows": evaluation.n_rows,
            "n_events": evaluation.n_events,
            "delta_max": str(evaluation.curve.delta_max),
            "verdict": list(self.verdict),
            "scores": [_plain_row(row) for row in evaluation.rows],
            "baselines": {
                name: {"pooled": float(score), "per_series_mean": score.per_series_mean}
                for name, score in evaluation.curve.baselines.named.items()
            },
            "random_baseline": _random_baseline(0.01, self.random_baseline),
            "best_random_baseline": _random_baseline(self.best_random_baseline_probability, self.best_random_baseline),
            "sweep": [
                {**vars(point), "delta_max": str(point.delta_max), "corrected": point.corrected} for point in self.sweep
            ],
            "threshold": self.threshold,
            "threshold_source": self.threshold_source,
            "missed_events": [vars(event) for event in self.missed],
            "detected_events": [vars(event) for event in self.events if event.detected],
            "false_alarms": [vars(alarm) for alarm in self.false_alarms],
            "unknown_share": self.unknown_share,
        }


def _plain_row(row: Row) -> JsonDict:
    ends = {} if row.interval is None else {"low": row.interval.low, "high": row.interval.high}
    plain = {name: value for name, value in vars(row).items() if name != "interval"}
    return {**plain, **ends, "corrected": row.corrected, "beware": row.warning}


def _random_baseline(p: float, result: PrecisionRecall) -> dict[str, float]:
    return {"p": p, "precision": result.precision, "recall": result.recall, "f1": result.f1}


def _sweep_values(delta_max: Delay) -> list[Delay]:
    if isinstance(delta_max, int | np.integer):
        return sorted({*SWEEP, int(delta_max)})
    whole = parse_duration(delta_max, name="delta_max", whose="audit")
    return [np.timedelta64(max(round(whole * factor), 1), "ns") for factor in FACTORS]


def _in_seconds(delta_max: Delay) -> Delay:
    """A swept duration in seconds, as a user would write it."""
    if isinstance(delta_max, np.timedelta64):
        return f"{delta_max / np.timedelta64(1, 's'):g}s"
    return delta_max


def _time(stamps: object, time_step: int) -> str:
    if stamps is None:
        return ""
    value = np.asarray(stamps)[time_step]
    return np.datetime_as_string(value, unit="s") if isinstance(value, np.datetime64) else str(value)


def audit(
    y_true: Labels,
    y_score: Scores,
    *,
    delta_max: Delay = 100,
    threshold: float | None = None,
    timestamps: Stamps = None,
    names: Sequence[str] | None = None,
    n_simulations: int = 3,
    random_state: Seed = 0,
) -> Audit:
    """Everything there is to say about scores on labelled series, with the trivial baselines beside it.

    Parameters
    ----------
    y_true, y_score, timestamps
        As in :func:`tisat.metrics.spd_score`.
    delta_max : int or duration
        The longest tolerable delay of the headline; a sweep around it is made too.
    threshold : float, optional
        Where alarms are raised for the lists of missed events and false alarms. Without one, the threshold of the best event F1 is
        taken and called *oracle*, for it was chosen with the labels.
    names : sequence of str, optional
        What the series are called.
    n_simulations, random_state
        Draws of the random trivial baselines.

    Returns
    -------
    Audit
        Every score with its baselines, and a result in words.

    Examples
    --------
    >>> import numpy as np
    >>> y_true = np.zeros(2000, dtype=int)
    >>> y_true[500:800] = y_true[1500:1700] = 1
    >>> random_baseline = np.random.default_rng(1).random(2000)
    >>> print(audit(y_true, random_baseline, delta_max=10).verdict[0])
    PA-F1 0.99 is what a trivial baseline gets: 0.99 (random).
    """
    number = check_integer(n_simulations, "n_simulations", "audit", minimum=1)
    all_scores(y_score, all_windows(y_true, delta_max, timestamps=timestamps, whose="audit"), whose="audit")
    source = "given"
    if threshold is None:
        source = "oracle"
        best = best_event_f1(y_true, y_score, delta_max=delta_max, timestamps=timestamps).threshold
        if np.isnan(best):
            raise InputError("The 'y_true' argument of audit must hold at least one event. Got none.")
        threshold = best
    evaluation = evaluate(
        y_true, y_score, delta_max=delta_max, threshold=threshold, timestamps=timestamps, n_simulations=number, random_state=random_state
    )  # fmt: skip
    windows = evaluation.curve.windows
    labels = series_list(y_true, name="y_true", whose="audit")
    scores = all_scores(y_score, windows, whose="audit")
    stamps = all_stamps(timestamps, labels, whose="audit")
    called = [str(i) for i in range(len(labels))] if names is None else list(names)
    if len(called) != len(labels):
        raise InputError(
            f"The 'names' argument of audit must name each of the {len(labels)} series. Got {len(called)} names instead."
        )
    events, false_alarms = [], []
    for name, s, window, clock in zip(called, scores, windows, stamps, strict=True):
        counts = count_active(s >= threshold, [window], whose="audit")
        for (start, stop), detected, delay in zip(window.events.tolist(), counts.detected, counts.delays, strict=True):
            events.append(EventOutcome(name, start, stop, bool(detected), float(delay), _time(clock, start)))
        false_alarms += [FalseAlarm(name, int(t), _time(clock, int(t))) for t in counts.false_alarms[0]]
    sweep = []
    for one in _sweep_values(delta_max):
        curve = spd_curve(labels, scores, delta_max=one, timestamps=timestamps)
        score, chance = curve.score, curve.baselines  # as in the headline: one baseline score for one quantity
        sweep.append(SweepPoint(_in_seconds(one), float(score), score.per_series_mean, chance.best, chance.best_name))
    probability, random_baseline = best_random_guess(labels)
    guessed = f"random, alarm with probability {probability:.3g}"
    evaluation = replace(
        evaluation,
        rows=tuple(
            replace(row, baseline_score=random_baseline.f1, baseline=guessed)
            if row.name == ADJUSTED and random_baseline.f1 > row.baseline_score
            else row
            for row in evaluation.rows
        ),
    )
    total = sum(map(len, scores))
    return Audit(
        evaluation=evaluation,
        threshold=float(threshold),
        threshold_source=source,
        random_baseline=random_guess(labels, 0.01),
        best_random_baseline_probability=probability,
        best_random_baseline=random_baseline,
        sweep=tuple(sweep),
        events=tuple(events),
        false_alarms=tuple(false_alarms),
        unknown_share=sum(int(np.isnan(s).sum()) for s in scores) / total if total else 0.0,
    )
