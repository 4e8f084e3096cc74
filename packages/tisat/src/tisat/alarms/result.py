"""What a calibration is: a threshold, the budget behind it, and in words what it is worth.

Four words, each a number. **Asked**: the budget. **Vouched for**: the rarest budget so much nominal data can speak for, one
alarm in a third of it. **Extrapolated**: by how much the budget asked for is rarer than that. **Realised**: the false alarms
counted on nominal data, each stretch at the threshold found on the others. This module does not know how a threshold is found.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tisat.alarms.budget import Budget
from tisat.alarms.episodes import Episodes
from tisat.errors import ArtefactError, ParameterError

CONFIDENCE = 0.95  # of the interval of the realised period


def period_interval(alarms: int, instants: int) -> tuple[float, float | None]:
    """Exact (Garwood) 95 % interval of the period between events of a Poisson process: ``alarms`` in ``instants``.

    Examples
    --------
    >>> low, high = period_interval(0, 3000)
    >>> round(low), high
    (813, None)
    """
    from scipy.stats import chi2

    tail = (1.0 - CONFIDENCE) / 2.0
    most = 0.5 * float(chi2.ppf(1.0 - tail, 2 * alarms + 2))
    least = 0.5 * float(chi2.ppf(tail, 2 * alarms)) if alarms else 0.0
    return instants / most, (instants / least if least > 0 else None)


@dataclass(frozen=True)
class Calibration:
    """A threshold, the budget behind it, and how the budget was kept on held-out nominal data."""

    rule: str  # paper, threshold, excess or one of your own
    budget: str  # as the user said it
    target: float  # instants between two false alarms, asked for
    threshold: float  # h
    method: str  # how it was found
    requested: str  # the method asked for
    realised: float | None  # instants between two false alarms on held-out nominal data; None: no alarm there
    low: float  # confidence interval of the realised period
    high: float | None  # None: unbounded
    alarms: int  # false alarms counted there
    instants: int  # instants counted over
    active: float | None  # share of those instants with the alarm on; None: not counted
    independence: float  # p-value of the independence test of nominal evidence
    correlation: float  # rank correlation of successive evidence
    vouched: float  # the longest period so many nominal instants can vouch for
    largest: float  # the largest statistic of nominal data, to be read beside the threshold
    period: float | None = None  # sampling period in seconds, where the budget speaks of time
    strict: bool = False  # the threshold of half the budget: kept more often than on average
    nominal: Episodes | None = None  # what another budget can be calibrated from; None: by other methods
    compression: tuple[float, float] | None = None  # centre and unit where the statistic itself is not logarithmic
    notes: tuple[str, ...] = ()  # assumptions that fail, in words

    @property
    def kept(self) -> bool:
        """Whether no more false alarms were counted than the budget allows."""
        return self.alarms <= self.instants / self.target

    @property
    def extrapolated(self) -> float:
        """By how much the budget is rarer than what the data can vouch for; 1 where it is not."""
        return max(self.target / self.vouched, 1.0)

    @property
    def words(self) -> tuple[str, ...]:
        """Asked, vouched for, extrapolated, realised: one sentence each."""
        say = Budget(self.budget, self.target, self.period).say
        beyond = "The threshold is read from the nominal data."
        if self.extrapolated > 1.0:
            beyond = f"Extrapolated: {self.extrapolated:.3g} times rarer than the data can vouch for."
        seen = "no false alarm" if self.alarms == 0 else f"{self.alarms} false alarm{'s' * (self.alarms != 1)}"
        most = "" if self.high is None else f" to {self.high:.0f}"
        return (
            f"Asked: {self.budget}, {say(self.target)}{', strict (the threshold of half of it, kept more often than on average)' * self.strict}.",
            f"Vouched for: {say(self.vouched)}.",
            beyond,
            f"Realised: {seen} in {self.instants} nominal instants, each part at the threshold of the others; "
            f"one in {self.low:.0f}{most or ' or more'} with 95 % confidence.",
            f"Threshold: h = {self.threshold:.4g}; the largest statistic of nominal data is {self.largest:.4g}.",
        )

    def __str__(self) -> str:
        realised = "no alarm" if self.realised is None else f"{self.realised:.0f}"
        high = "inf" if self.high is None else f"{self.high:.0f}"
        beyond = f", extrapolated {self.extrapolated:.3g}-fold" if self.extrapolated > 1.0 else ""
        return (
            f"{self.rule} rule, h = {self.threshold:.4g} (largest nominal {self.largest:.4g}) by {self.method}: "
            f"false-alarm period target {self.target:.0f} instants, vouched for {self.vouched:.0f}{beyond}, "
            f"realised {realised} (95 % interval {self.low:.0f} to {high}; {self.alarms} in {self.instants} nominal instants)"
        )

    def recalibrated(self, budget: object, *, strict: bool | None = None) -> Calibration:
        """The calibration for another budget, from the nominal data kept here: nothing is trained again.

        Examples
        --------
        >>> import numpy as np
        >>> from tisat.alarms import calibrate, make_rule
        >>> first = calibrate(make_rule("excess"), np.random.default_rng(0).exponential(size=30_000), "1/1000 instants")
        >>> first.recalibrated("1/5000 instants").threshold > first.threshold
        True
        """
        if self.nominal is None:
            raise ParameterError(
                f"A calibration by {self.method!r} must be made again from nominal data. Only 'episodes' keeps what another budget needs."
            )
        wanted = Budget.parse(budget, period=self.period)
        return from_episodes(
            replace(self, budget=str(wanted), target=wanted.instants, strict=self.strict if strict is None else strict),
            self.nominal,
        )

    def plot(self, ax: Any = None) -> Any:
        """The threshold against the budget, vouched for and extrapolated, with the one in force, on matplotlib axes."""
        from tisat.utils.extras import require
        from tisat.utils.palette import ALARM, EXPECTED

        if self.nominal is None:
            raise ParameterError(
                f"A calibration by {self.method!r} cannot be drawn. Only 'episodes' keeps what the picture needs."
            )
        if ax is None:
            ax = require("matplotlib.pyplot", whose="A picture of a calibration").subplots(layout="constrained")[1]
        first = max(2.0, min(self.target, self.vouched) / 30)
        last = max(self.target, self.vouched) * 3
        periods = [first * (last / first) ** (i / 199) for i in range(200)]
        levels = [expanded(self.nominal.threshold(one, strict=self.strict), self.compression) for one in periods]
        ax.plot(periods, levels, color=EXPECTED, label="threshold")
        ax.axvspan(self.vouched, last, color="0.9", zorder=0, label="extrapolated")
        ax.plot([self.target], [self.threshold], "o", color=ALARM, label=f"{self.budget}: h = {self.threshold:.4g}")
        ax.axhline(self.largest, color="0.6", linewidth=0.8, linestyle="--", label="largest nominal")
        ax.set(xscale="log", xlim=(first, last), xlabel="instants between two false alarms", ylabel="threshold h")
        ax.legend(frameon=False, fontsize="small")
        return ax

    def to_json(self) -> dict[str, Any]:
        """Plain values, as kept in artefacts."""
        nominal = None if self.nominal is None else self.nominal.to_json()
        compression = None if self.compression is None else list(self.compression)
        return {**asdict(self), "nominal": nominal, "compression": compression, "notes": list(self.notes)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Calibration:
        """Back from :meth:`to_json`."""
        known = {field.name for field in fields(cls)}
        if set(document) != known:
            odd = sorted(set(document) ^ known)
            raise ArtefactError(f"A calibration must have its fields and no others. {odd[0]!r} is missing or unknown.")
        nominal = None if document["nominal"] is None else Episodes.from_json(document["nominal"])
        compression = None if document["compression"] is None else tuple(map(float, document["compression"]))
        return cls(**{**document, "nominal": nominal, "compression": compression, "notes": tuple(document["notes"])})


def expanded(level: float, compression: tuple[float, float] | None) -> float:
    """A threshold in the statistic's own unit from one on the logarithmic scale."""
    if compression is None:
        return level
    centre, unit = compression
    return centre + unit * math.expm1(min(level, 600.0))


def from_episodes(draft: Calibration, nominal: Episodes) -> Calibration:
    """``draft`` with the threshold for its target read from nominal episodes, and what follows from it."""
    level = nominal.threshold(draft.target, strict=draft.strict)
    alarms = nominal.realised(draft.target, strict=draft.strict)
    low, high = period_interval(alarms, nominal.length)
    notes: tuple[str, ...] = ()
    if draft.target > nominal.vouched:
        say = Budget(draft.budget, draft.target, draft.period).say
        notes = (
            f"{nominal.length} nominal instants cannot vouch for {say(draft.target)}; the rarest budget they can vouch for is "
            f"{say(nominal.vouched)}. The threshold is extrapolated {draft.target / nominal.vouched:.3g}-fold: "
            f"h = {expanded(level, draft.compression):.4g}, the largest nominal statistic is {expanded(nominal.largest, draft.compression):.4g}.",
        )
    return replace(
        draft,
        threshold=expanded(level, draft.compression),
        method="episodes",
        realised=nominal.length / alarms if alarms else None,
        low=low,
        high=high,
        alarms=alarms,
        instants=nominal.length,
        active=None,
        vouched=nominal.vouched,
        largest=expanded(nominal.largest, draft.compression),
        nominal=nominal,
        notes=notes,
    )
