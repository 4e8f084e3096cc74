"""Notes of a calibration on the training rows."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import numpy as np

from tisat.alarms.budget import Budget
from tisat.alarms.calibration import Calibration
from tisat.alarms.sentences import Habits
from tisat.datasets.sizes import kept_notes
from tisat.errors import InputError, ParameterError
from tisat.gap_filling import training_range
from tisat.io.columns import listed
from tisat.io.durations import spelt
from tisat.utils.types import AnyFloats, JsonMap
from tisat.watch.protocols import CROSS_FITTED, Scorer

ALONE = 0.6  # mean share of one channel of the evidence, from which it is said, of so many channels:
ALONE_OF = 3
RAREST, FEWEST_RARE = 500, 20  # one in so many normal rows, at least so many, sets the threshold
ALL_CONSTANT = (
    "All training data is constant: nothing in it varies that a threshold could be found from, so no budget is supported by it, "
    "and a change by a few times 1 % (at least 0.01) stands out."
)
FOREIGN, MOST_OF = 10.0, 0.6  # spreads from the median of training, and the share of channels, from which on it is said
FEW = 5000  # rows that are looked at
LABELLED = "labelled anomalous, and learned as normal"


def notes_of(detector: Any, calibration: Calibration | None = None, period: float | None = None) -> tuple[str, ...]:
    """The sentences about the training data of a fitted detector, with the calibration and sampling period in force where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from tisat.detectors import LastValue
    >>> notes_of(LastValue().fit(np.column_stack([np.arange(50.0) % 7, np.ones(50)])))
    ("Channel '1' is constant in the training data: a change by a few times 1 % of it (at least 0.01) stands out, a smaller one may not. Leave it out where that is not wanted.",)
    """
    trained = getattr(detector, "trained_on_", {})
    left, constant = trained.get("left_out"), list(trained.get("constant", ()))
    notes = [left] if isinstance(left, str) else []
    if labelled := trained.get("labelled", 0):
        notes.append(
            f"{labelled:,} of {trained['rows']:,} training rows are {LABELLED}. Leave them out: fit on the rows labelled 0 "
            "(frame[frame.label == 0]), or without all that stand out (--contaminated, contaminated=True)."
        )
    if constant and len(constant) == len(detector.channels_):
        notes.append(ALL_CONSTANT)
    elif constant:
        several = len(constant) > 1
        names = f"Channels {listed(constant)} are" if several else f"Channel {constant[0]!r} is"
        notes.append(
            f"{names} constant in the training data: a change by a few times 1 % of {'them' if several else 'it'} (at least 0.01) stands out, "
            f"a smaller one may not. Leave {'them' if several else 'it'} out where that is not wanted."
        )
    return (*notes, *_kept_notes(detector), *_uneven_notes(trained, calibration, period), *_loudest_note(detector))


def with_notes(calibration: Calibration, detector: Scorer, period: float | None) -> Calibration:
    """The calibration with the sentences about the training data among its notes."""
    return replace(calibration, notes=(*calibration.notes, *notes_of(detector, calibration, period)))


def _uneven_notes(
    trained: JsonMap, calibration: Calibration | None = None, period: float | None = None
) -> tuple[str, ...]:
    """The sentence about rows that come at no even pace, with what the budget in force means by the clock.

    Examples
    --------
    >>> print(_uneven_notes({"period_seconds": 41.7, "mean_seconds": 60.0})[0][65:])
    a budget per time counts rows of 41.7 s, and has one alarm in 1.44 times its time.
    """
    median, mean = trained.get("period_seconds"), trained.get("mean_seconds")
    if not median or not mean:
        return ()
    step = period or median
    means = f"has one alarm in {mean / step:.3g} times its time."
    if calibration is not None and _by_time(calibration.budget):
        means = (
            f"{calibration.budget} is one alarm in {spelt(calibration.target * mean)}. "
            f"By the clock it is '1/{round(calibration.target * step / mean)} rows'."
        )
    return (
        f"Rows come every {spelt(median)} in the median and every {spelt(mean)} on average: a budget per time counts rows of {spelt(step)}, "
        f"and {means}",
    )


def _by_time(budget: str) -> bool:
    """Whether a budget in words needs a clock."""
    try:
        Budget.parse(budget)
    except ParameterError:
        return True
    return False


def _kept_notes(detector: Scorer) -> tuple[str, ...]:
    """The sentence about training rows that no budget is checked on, where the model keeps scores of all that have one."""
    if getattr(detector, "normal_source_", "") != CROSS_FITTED:
        return ()
    trained = detector.trained_on_
    context = getattr(detector, "_context", lambda: None)() or 0
    rows = trained["rows"] - len(trained["series"]) * context  # the first ones only warm up
    return kept_notes(len(detector.normal_), rows, most=trained.get("most_kept"))


def _loudest_note(detector: Scorer) -> tuple[str, ...]:
    """The sentence about a channel that makes most of the normal evidence, and so the threshold, alone.

    Nothing where there is none, of fewer than three channels, or of a detector that does not know.
    """
    points = detector.normal_
    amounts = detector._amounts(points)
    if amounts is None or len(detector.channels_) < ALONE_OF or not len(points):
        return ()
    scores = np.nan_to_num(detector.aggregate(points), nan=-np.inf)
    most = np.argsort(-scores, kind="stable")[: max(len(points) // RAREST, FEWEST_RARE)]
    evidence = np.nan_to_num(amounts[most])
    shares = (evidence / np.maximum(evidence.sum(axis=1, keepdims=True), 1e-9)).mean(axis=0)
    first = int(np.argmax(shares))
    if shares[first] < ALONE:
        return ()
    name = detector.channels_[first]
    return (
        f"{name} makes {100 * shares[first]:.0f} % of the evidence in the training rows that set the threshold: left out (--drop {shlex.quote(name)}), "
        "faults of the others may be found sooner.",
    )


def labelled_in(y: object, rows: int) -> dict[str, int]:
    """Record how many rows are anomalous by labels of 0 and 1, or of -1 (scikit-learn's outliers) and 1; nothing where ``y`` is something else.

    Examples
    --------
    >>> labelled_in([0, 1, 1], 3), labelled_in([1, -1], 2), labelled_in(None, 3)
    ({'labelled': 2}, {'labelled': 1}, {})
    """
    labels = np.asarray(y)
    if labels.dtype.kind not in "biuf" or not np.isin(labels, (-1, 0, 1)).all():
        return {}
    if labels.size != rows:
        raise InputError(
            f"The y given to Watch.fit must have a label for each of {rows:,} rows. Got {labels.size:,} instead."
        )
    count = int(np.count_nonzero(labels == (-1 if (labels < 0).any() else 1)))
    return {"labelled": count} if count else {}


def warnings_of(watch: Any) -> tuple[str, ...]:
    """Those of the sentences that a program should stumble over: rows were left out, labelled or without a score, or nothing could be learned."""
    detector, calibration = watch.detector, watch.calibration
    trained = getattr(detector, "trained_on_", {})
    kept = _kept_notes(detector)
    uneven = _uneven_notes(trained, calibration, watch.period) if _by_time(calibration.budget) else ()
    few = calibration.target > calibration.supported
    most_lack = 2 * len(detector.normal_) < trained.get("rows", 0)
    return tuple(
        note
        for note in notes_of(detector, calibration, watch.period)
        if note == ALL_CONSTANT
        or LABELLED in note
        or note in uneven
        or (trained.get("left_out_rows", 0) and "were left out" in note)
        or (note in kept and (few or (most_lack and "lack values" in note)))
    )


def foreign_note(detector: Any, values: AnyFloats) -> str:
    """Say that most channels are far from where training had them; empty where they are not.

    Examples
    --------
    >>> from tisat.detectors import LastValue
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> print(foreign_note(LastValue().fit(rows), rows + 50.0)[:70])
    Most rows are far from training in 2 of 2 channels, such as '0' (49.87
    >>> foreign_note(LastValue().fit(rows), rows + [0.0, 50.0])
    ''
    """
    usual = getattr(detector, "usual_", None)
    if usual is None or len(values) == 0:
        return ""
    few = values[:: max(len(values) // FEW, 1)]
    known = ~np.isnan(few).all(axis=0)
    middle = np.full(few.shape[1], np.nan)
    middle[known] = np.nanmedian(few[:, known], axis=0)
    far = np.abs(middle - usual[0]) > FOREIGN * usual[1]
    if far.sum() < max(MOST_OF * far.size, 2):
        return ""
    c = int(np.nanargmax(np.where(far, np.abs(middle - usual[0]) / usual[1], np.nan)))
    return (
        f"Most rows are far from training in {int(far.sum())} of {far.size} channels, such as {detector.channels_[c]!r} "
        f"({middle[c]:.4g}, usually {usual[0, c]:.4g}): is this the right model, and in the same units?"
    )


def habits_of(detector: Any) -> Habits:
    """Facts about the channels in training that the sentences of an alarm use."""
    bounds = getattr(detector, "bounds_", None)
    return Habits.of(
        detector.trained_on_, getattr(detector, "usual_", None), None if bounds is None else training_range(bounds)
    )
