"""The result of a calibration: threshold, budget, and its evidence in words.

Four words, each a number. **Asked**: the budget. **Supported**: the rarest budget so much normal data can speak for, one
alarm in a third of it. **Extrapolated**: by how much the budget asked for is rarer than that. **Observed**: the false alarms
counted on normal data, each stretch at the threshold found on the others. This module does not know how a threshold is found.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

from tisat.alarms.budget import Budget, BudgetLike
from tisat.alarms.control import BURST, LOWER, Control
from tisat.alarms.episodes import Episodes
from tisat.errors import ArtefactError, ParameterError
from tisat.utils.numbers import say_number
from tisat.utils.types import JsonDict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CONFIDENCE = 0.95  # of the interval of the observed period
WORTH_SAYING = 1.1  # a budget so many times as rare as the data supports
FAR = 3.0  # from so many times on small changes are missed, which is said
MANY = 50  # events; more are left to scipy


def times(factor: float) -> str:
    """Format a factor: ``2.3 times``.

    Examples
    --------
    >>> times(2.68), times(319.0)
    ('2.7 times', '319 times')
    """
    return f"{say_number(factor)} times"


def period_interval(alarms: int, time_steps: int, *, folds: int = 0) -> tuple[float, float | None]:
    """Exact (Garwood) 95 % interval of the period between events of a Poisson process: ``alarms`` in ``time_steps``.

    With ``folds`` the events were counted by models that were fitted on ``1 - 1 / folds`` of the rows. One fitted on all of
    them is quieter on rows it has not seen, by as much as it has more rows at most: the period may be that much longer.

    Examples
    --------
    >>> low, high = period_interval(0, 3000)
    >>> round(low), high
    (813, None)
    """
    tail = (1.0 - CONFIDENCE) / 2.0
    most = _gamma_quantile(alarms + 1, 1.0 - tail)
    least = _gamma_quantile(alarms, tail) if alarms else 0.0
    more_rows = folds / (folds - 1) if folds > 1 else 1.0
    return time_steps / most, (more_rows * time_steps / least if least > 0 else None)


def _gamma_quantile(shape: int, share: float) -> float:
    """The quantile of a gamma distribution of a whole-numbered shape, by halving.

    Scipy's special functions take 0.3 s to import.
    """
    if shape > MANY:
        from scipy.special import gammaincinv

        return float(gammaincinv(shape, share))
    low, high = 0.0, 10.0 * shape + 50.0
    while True:
        middle = (low + high) / 2.0
        if not low < middle < high:
            return middle
        term = below = math.exp(-middle)  # of a Poisson distribution with this mean: fewer than ``shape`` events
        for k in range(1, shape):
            term *= middle / k
            below += term
        low, high = (middle, high) if 1.0 - below < share else (low, middle)


@dataclass(frozen=True)
class Calibration:
    """A threshold, the budget behind it, and how the budget was kept on held-out normal data.

    Examples
    --------
    >>> import numpy as np
    >>> from tisat.alarms import calibrate, make_rule
    >>> found = calibrate(make_rule("threshold"), np.random.default_rng(0).exponential(size=9000), "1/1000 rows")
    >>> found.budget, found.target, round(found.threshold, 1)
    ('1/1000 rows', 1000.0, 7.6)
    """

    rule: str  # paper, threshold, excess or one of your own
    budget: str  # as the user gave it
    target: float  # rows between two false alarms, asked for
    threshold: float  # h
    method: str  # how it was found
    requested: str  # the method asked for
    observed: float | None  # rows between two false alarms on held-out normal data; None: no alarm there
    low: float  # confidence interval of the observed period
    high: float | None  # None: unbounded
    alarms: int  # false alarms counted there
    time_steps: int  # rows counted over
    active: float | None  # share of those rows with the alarm on; None: not counted
    independence: float  # p-value of the independence test of normal evidence
    correlation: float  # rank correlation of successive evidence
    supported: float  # the longest period so many normal rows can support
    largest: float  # the largest statistic of normal data, to be read beside the threshold
    period: float | None = None  # sampling period in seconds, where the budget speaks of time
    folds: int = 0  # the rows counted over were scored by so many models, each without a fold; 0: by the one in use
    normal: Episodes | None = None  # what another budget can be calibrated from; None: by other methods
    compression: tuple[float, float] | None = None  # centre and unit where the statistic itself is not logarithmic
    notes: tuple[str, ...] = ()  # assumptions that fail, in words
    controlled: bool = False  # the threshold follows the alarms; see tisat.alarms.control
    calm: float | None = None  # the level a tenth of the calibration rows lie above, on the logarithmic scale

    @property
    def kept(self) -> bool:
        """Whether no more false alarms were counted than the budget allows."""
        return self.alarms <= self.time_steps / self.target

    @property
    def extrapolated(self) -> float:
        """By how much the budget is rarer than what the data can support.

        1 where it is not.
        """
        return max(self.target / self.supported, 1.0)

    @property
    def advice(self) -> str:
        """The budget to type instead of one that is far rarer than the data supports; empty where it is not."""
        if self.extrapolated < FAR or not self.largest > 0:  # of data that never varies no budget is supported
            return ""
        typed = Budget(self.budget, self.target, self.period).as_typed(self.supported)
        each = " for each machine" if " over " in self.budget else ""
        return f"At this threshold small or short changes will not be seen; --budget {typed}{each} is supported by the training rows."

    @property
    def control(self) -> Control | None:
        """The control of the threshold; None where it is fixed."""
        if not self.controlled or self.normal is None:
            return None
        level = self.threshold
        if self.compression is not None:
            level = math.log1p(max(self.threshold - self.compression[0], 0.0) / self.compression[1])
        lowest = max(level - LOWER, self.calm or 0.0, self.normal.floor)
        return Control(self.target, level, lowest, self.compression)

    @property
    def words(self) -> tuple[str, ...]:
        """Asked, supported, extrapolated, observed: one sentence each."""
        say = Budget(self.budget, self.target, self.period).say
        beyond = "The threshold is read from the normal data."
        if self.extrapolated > 1.0:
            far = f"{times(self.extrapolated)} as rare as" if self.extrapolated >= WORTH_SAYING else "just beyond what"
            beyond = f"Extrapolated: {far} the data can support."
        supported = say(self.supported)
        if self.largest <= 0:
            supported, beyond = "no budget", "Nothing in the normal data varies."
        alarms_words = "no false alarm" if self.alarms == 0 else f"{self.alarms} false alarm{'s' * (self.alarms != 1)}"
        most = "" if self.high is None else f" to {self.high:.0f}"
        return (
            f"Asked: {self.budget}, {say(self.target)}.",
            f"Supported: {supported}.",
            beyond,
            f"Observed: {alarms_words} in {self.time_steps} normal rows, each part at the threshold of the others; "
            f"one in {self.low:.0f}{most or ' or more'} with 95 % confidence.",
            f"Threshold: h = {self.threshold:.4g}; the largest statistic of normal data is {self.largest:.4g}.",
            self._control_in_words(),
        )

    def _control_in_words(self) -> str:
        control = self.control
        if control is None:
            return "Controlled: no. The threshold stays where it is; where normal changes, the budget may be exceeded."
        low, high = control.bounds
        return (
            f"Controlled: the threshold follows the alarms between {low:.4g} and {high:.4g}, so that in the long run those below the highest are at most "
            f"{self.budget}; after a calm time {BURST:.0f} alarms move nothing, and one above {high:.4g} is always raised and does not count."
        )

    def __str__(self) -> str:
        say = Budget(self.budget, self.target, self.period).say
        alarms = "no alarm" if self.alarms == 0 else f"{self.alarms:,} alarm{'s' * (self.alarms != 1)}"
        interval = f"{self.low:.0f} or more" if self.high is None else f"{self.low:.0f} to {self.high:.0f}"
        rarer = self.extrapolated if self.largest > 0 else 0.0
        supports = f"up to {say(self.supported)}" if self.largest > 0 else "no budget: nothing in it varies"
        beyond = f"; {times(rarer)} as rare as your data supports" if rarer >= WORTH_SAYING else ""
        follows = ", follows the alarms" if self.control is not None else ""
        return (
            f"Threshold {self.threshold:.4g} ({self.rule} rule{follows}).\n"
            f"Asked for: {self.budget}, {say(self.target)}{beyond}.\n"
            f"Your data supports {supports}.\n"
            f"Held-out check: {alarms} in {self.time_steps:,} normal rows; 1 in {interval} rows with 95 % confidence."
        )

    def recalibrated(self, budget: BudgetLike) -> Calibration:
        """The calibration for another budget, from the normal data kept here: nothing is trained again.

        Examples
        --------
        >>> import numpy as np
        >>> from tisat.alarms import calibrate, make_rule
        >>> first = calibrate(make_rule("excess"), np.random.default_rng(0).exponential(size=30_000), "1/1000 rows")
        >>> first.recalibrated("1/5000 rows").threshold > first.threshold
        True
        """
        if self.normal is None:
            raise ParameterError(
                f"A calibration by {self.method!r} must be made again from normal data. Only 'episodes' keeps what another budget needs."
            )
        wanted = Budget.parse(budget, period=self.period)
        return from_episodes(replace(self, budget=str(wanted), target=wanted.time_steps), self.normal)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The threshold against the budget, supported and extrapolated, with the one in force, on matplotlib axes."""
        from tisat.utils.extras import require
        from tisat.utils.palette import ALARM, EXPECTED

        if self.normal is None:
            raise ParameterError(
                f"A calibration by {self.method!r} cannot be drawn. Only 'episodes' keeps what the picture needs."
            )
        if ax is None:
            ax = require("matplotlib.pyplot", whose="A picture of a calibration").subplots(layout="constrained")[1]
        first = max(2.0, min(self.target, self.supported) / 30)
        last = max(self.target, self.supported) * 3
        periods = [first * (last / first) ** (i / 199) for i in range(200)]
        levels = [expanded(self.normal.threshold(one), self.compression) for one in periods]
        ax.plot(periods, levels, color=EXPECTED, label="threshold")
        ax.axvspan(self.supported, last, color="0.9", zorder=0, label="extrapolated")
        ax.plot([self.target], [self.threshold], "o", color=ALARM, label=f"{self.budget}: h = {self.threshold:.4g}")
        ax.axhline(self.largest, color="0.6", linewidth=0.8, linestyle="--", label="largest normal")
        ax.set(xscale="log", xlim=(first, last), xlabel="rows between two false alarms", ylabel="threshold h")
        ax.legend(frameon=False, fontsize="small")
        return ax

    def to_json(self) -> JsonDict:
        """Plain values, as kept in artefacts."""
        normal = None if self.normal is None else self.normal.to_json()
        compression = None if self.compression is None else list(self.compression)
        return {**asdict(self), "normal": normal, "compression": compression, "notes": list(self.notes)}

    @classmethod
    def from_json(cls, document: JsonDict) -> Calibration:
        """Back from :meth:`to_json`."""
        field_names = {field.name for field in fields(cls)}
        document = {
            "controlled": False,
            "calm": None,
            "folds": 0,
            **document,
        }  # files of earlier versions do not have these
        # Nor is there a strict budget any more: its threshold stays where it is.
        if document.pop("strict", False) is True:
            document["normal"] = None
        if set(document) != field_names:
            odd = sorted(set(document) ^ field_names)
            raise ArtefactError(f"A calibration must have its fields and no others. {odd[0]!r} is missing or unknown.")
        normal = None if document["normal"] is None else Episodes.from_json(document["normal"])
        compression = None if document["compression"] is None else tuple(map(float, document["compression"]))
        return cls(**{**document, "normal": normal, "compression": compression, "notes": tuple(document["notes"])})


def expanded(level: float, compression: tuple[float, float] | None) -> float:
    """A threshold in the statistic's own unit from one on the logarithmic scale."""
    if compression is None:
        return level
    centre, unit = compression
    return centre + unit * math.expm1(min(level, 600.0))


def from_episodes(draft: Calibration, normal: Episodes) -> Calibration:
    """``draft`` with the threshold for its target read from normal episodes, and what follows from it."""
    level = normal.threshold(draft.target)
    alarms = normal.observed(draft.target)
    low, high = period_interval(alarms, normal.length, folds=draft.folds)
    notes: tuple[str, ...] = ()
    if draft.target > normal.supported and expanded(normal.largest, draft.compression) > 0:
        say = Budget(draft.budget, draft.target, draft.period).say
        rarer = draft.target / normal.supported
        beyond = f" to a budget {times(rarer)} as rare" if rarer >= WORTH_SAYING else ""
        notes = (
            f"{normal.length} normal rows cannot support {say(draft.target)}; the rarest budget they can support is "
            f"{say(normal.supported)}. The threshold is extrapolated{beyond}: "
            f"h = {expanded(level, draft.compression):.4g}, the largest normal statistic is {expanded(normal.largest, draft.compression):.4g}.",
        )
    calibration = replace(
        draft,
        threshold=expanded(level, draft.compression),
        method="episodes",
        observed=normal.length / alarms if alarms else None,
        low=low,
        high=high,
        alarms=alarms,
        time_steps=normal.length,
        active=None,
        supported=normal.supported,
        largest=expanded(normal.largest, draft.compression),
        normal=normal,
        notes=notes,
    )
    return with_advice(calibration)


def with_advice(calibration: Calibration) -> Calibration:
    """The calibration with its advice at the end of the last note, which says that the data does not support the budget."""
    if not calibration.advice:
        return calibration
    *others, last = calibration.notes or ("",)
    return replace(calibration, notes=(*others, f"{last} {calibration.advice}".lstrip()))
