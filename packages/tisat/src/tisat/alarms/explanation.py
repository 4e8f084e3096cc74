"""Why an alarm: what kind of fault it looks like, which channels, what was seen and what was expected, in the user's units.

Every detector makes one (:meth:`tisat.detectors.base.Detector.explain`) from the row and its point. This module knows no detector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tisat.utils.types import Array, Integers, JsonDict, JsonMap

SMALLEST_SHARE = 0.05  # channels below it are not worth a sentence


@dataclass(frozen=True)
class Reason:
    """The contribution of one channel to an alarm, in the user's units."""

    channel: str
    share: float  # of the evidence
    seen: float | None  # None: missing
    expected: float | None  # None: the detector does not know
    spread: float | None
    words: str = ""  # the sentence of its kind; empty: seen and expected say it

    def __str__(self) -> str:
        if self.words:
            return self.words
        text = f"{self.channel} {number(self.seen, self.spread)}"
        if self.expected is not None:
            text += f", expected {number(self.expected, self.spread)}"
            text += "" if self.spread is None else f" ± {number(self.spread, self.spread)}"
        return text


def reason_to_json(reason: Reason) -> JsonDict:
    """Plain values, with the sentence where only the numbers are kept.

    Examples
    --------
    >>> reason = Reason("flow", 1.0, 5.2, 3.0, 0.1)
    >>> reason_to_json(reason)["words"], reason_from_json(reason_to_json(reason)) == reason
    ('flow 5.20, expected 3.00 ± 0.10', True)
    """
    return {**vars(reason), "words": str(reason)}


def reason_from_json(document: JsonMap) -> Reason:
    """Back from :func:`reason_to_json`: words that the numbers say are not kept."""
    plain = Reason(**{**document, "words": ""})
    return plain if document.get("words", "") in ("", str(plain)) else Reason(**document)


@dataclass(frozen=True)
class Explanation:
    """The reasons of one row.

    Examples
    --------
    >>> why = Explanation("spike", np.array([0.9, 0.1]), np.array([71.3, 2.0]), np.array([58.2, 2.1]), np.array([1.9, 0.2]), "contribution")
    >>> why.sentences(("bearing_temp", "flow"), most=1)
    ['bearing_temp 71.3, expected 58.2 ± 1.9 (90 % of the evidence)']
    """

    kind: str  # spike, stuck, restless, relations, rhythm, pattern, forecast error, unusual, ...
    channels: Array  # (C,) shares of the evidence; they add up to 1
    seen: Array  # (C,) values, in the user's units
    expected: Array  # (C,) what the detector expected, or the usual value; NaN where it does not know
    spread: Array  # (C,) how far a normal value usually is from it
    how: str  # where the shares come from: contribution, leaving channels out, distance from the usual value
    partners: tuple[tuple[int, ...], ...] = ()  # for each channel the others its expected value comes from, if any
    times: float | None = None  # how many times as much as usual the first channel moves

    def ranking(self) -> Integers:
        """Channels, the most contributing first; ties in their order."""
        return np.argsort(-self.channels, kind="stable").astype(np.int64)

    def reasons(self, names: Sequence[str], channels: Array | None = None, *, most: int = 5) -> tuple[Reason, ...]:
        """The channels that matter most, each with what was seen and expected.

        By other shares where given.
        """
        contributing = self.channels if channels is None else channels
        order = np.argsort(-contributing, kind="stable")
        listed = [c for place, c in enumerate(order[:most]) if place == 0 or contributing[c] >= SMALLEST_SHARE]
        return tuple(
            Reason(
                names[c],
                float(contributing[c]),
                _finite_or_none(self.seen[c]),
                _finite_or_none(self.expected[c]),
                _finite_or_none(self.spread[c]),
            )
            for c in listed
        )

    def sentences(self, names: Sequence[str], *, most: int = 3) -> list[str]:
        """One sentence for each of the most contributing channels."""
        return [f"{one} ({100 * one.share:.0f} % of the evidence)" for one in self.reasons(names, most=most)]


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def number(value: float | None, spread: float | None) -> str:
    """A value with as many digits as its spread has meaning for: two of the spread's own.

    Examples
    --------
    >>> number(58.23456, 1.9), number(58.23456, 0.019), number(None, 1.0)
    ('58.2', '58.235', 'missing')
    """
    if value is None:
        return "missing"
    if spread is None or not 1e-5 < spread < 1e9 or abs(value) >= 1e12:
        return f"{value:.6g}"
    digits = max(0, 1 - int(np.floor(np.log10(spread))))
    return f"{value:.{digits}f}"


def shares(amounts: Array) -> Array:
    """Amounts ``(C,)`` as shares that add up to 1: none below 0, equal where nothing is known.

    Examples
    --------
    >>> shares(np.array([3.0, -1.0, np.nan, 1.0])).tolist(), shares(np.zeros(2)).tolist()
    ([0.75, 0.0, 0.0, 0.25], [0.5, 0.5])
    """
    amounts_above_zero = np.where(np.isfinite(amounts), np.maximum(amounts, 0.0), 0.0)
    if np.isposinf(amounts).any():
        amounts_above_zero = np.isposinf(amounts).astype(np.float64)
    largest = float(amounts_above_zero.max(initial=0.0))
    if largest <= 0.0:
        return np.full(len(amounts_above_zero), 1.0 / len(amounts_above_zero))
    amounts_above_zero = amounts_above_zero / largest
    return np.asarray(amounts_above_zero / amounts_above_zero.sum())
