"""Notes of a calibration on the training rows."""

from __future__ import annotations

from typing import Any

from tisat.alarms.sentences import Habits
from tisat.gap_filling import training_range
from tisat.io.columns import listed

ALL_CONSTANT = (
    "All training data is constant: nothing in it varies that a threshold could be found from, so no budget is supported by it, "
    "and any other value stands out."
)


def notes_of(detector: Any) -> tuple[str, ...]:
    """The sentences about the training data of a fitted detector.

    Examples
    --------
    >>> import numpy as np
    >>> from tisat.detectors import LastValue
    >>> notes_of(LastValue().fit(np.column_stack([np.arange(50.0) % 7, np.ones(50)])))
    ("Channel '1' is constant in the training data: any other value of it stands out. Leave it out where that is not wanted.",)
    """
    trained = getattr(detector, "trained_on_", {})
    left, constant = trained.get("left_out"), list(trained.get("constant", ()))
    notes = [left] if isinstance(left, str) else []
    if constant and len(constant) == len(detector.channels_):
        notes.append(ALL_CONSTANT)
    elif constant:
        several = len(constant) > 1
        names = f"Channels {listed(constant)} are" if several else f"Channel {constant[0]!r} is"
        notes.append(
            f"{names} constant in the training data: any other value of {'them' if several else 'it'} stands out. "
            f"Leave {'them' if several else 'it'} out where that is not wanted."
        )
    return tuple(notes)


def warnings_of(detector: Any) -> tuple[str, ...]:
    """Those of the sentences that a program should stumble over: rows were left out, or nothing could be learned."""
    left_out = getattr(detector, "trained_on_", {}).get("left_out_rows", 0)
    return tuple(note for note in notes_of(detector) if note == ALL_CONSTANT or (left_out and "were left out" in note))


def habits_of(detector: Any) -> Habits:
    """Facts about the channels in training that the sentences of an alarm use."""
    bounds = getattr(detector, "bounds_", None)
    return Habits.of(
        detector.trained_on_, getattr(detector, "usual_", None), None if bounds is None else training_range(bounds)
    )
