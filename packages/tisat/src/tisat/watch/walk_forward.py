"""Walk forward through history: what alarms a watch would have raised, had it been fitted again and again.

The model of each step is fitted on the rows before it and raises the alarms of the rows after: no row is scored by a model that
has seen it, or anything later. No labels are needed. Every row counts as training, rows under an alarm too: somebody who takes
known faults out first gets a better model than this.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from tisat import registry
from tisat.alarms.alarms import Alarm
from tisat.alarms.budget import Budget, BudgetLike
from tisat.errors import CalibrationWarning, ParameterError, SeriesError
from tisat.io.durations import nanoseconds_of
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.numbers import say_number
from tisat.utils.parameters import clone
from tisat.utils.types import JsonDict
from tisat.watch.protocols import Scorer, WatchSettings
from tisat.watch.watch import DEFAULT_BUDGET, DEFAULT_BUDGET_WITHOUT_CLOCK, Watch

LEAD = 3000  # rows before a step that its model sees first: its warm-up
FACTORS = {
    "1/week": 7 * 86_400.0,
    "3/week": 7 * 86_400.0 / 3,
    "1/day": 86_400.0,
    "3/day": 28_800.0,
}  # seconds between two
IN_ROWS = ("1/100000 rows", "1/30000 rows", "1/10000 rows", "1/3000 rows")
MUST = "a duration such as '14d', or rows such as '5000 rows'"


@dataclass(frozen=True)
class Step:
    """One stretch of history and the alarms that the model of the rows before it would have raised."""

    start: int  # first row
    stop: int  # first row after it
    trained: int  # rows the model was fitted on
    start_time: str | float | None
    stop_time: str | float | None  # of its last row
    threshold: float
    allowed: float  # alarms the budget allows in so many rows
    alarms: tuple[Alarm, ...]  # rows counted from the beginning of the series
    counts: Mapping[str, int]  # what-if: alarms by budget

    def to_json(self) -> JsonDict:
        """Plain values."""
        return {**vars(self), "alarms": [one.to_json() for one in self.alarms], "counts": dict(self.counts)}


@dataclass(frozen=True)
class Backtest:
    """The steps of a walk forward, in order."""

    name: str
    budget: str
    steps: tuple[Step, ...]

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms, in order."""
        return tuple(alarm for step in self.steps for alarm in step.alarms)

    @property
    def counts(self) -> dict[str, int]:
        """Alarms by budget over all steps, the rarest budget first."""
        total: Counter[str] = Counter()
        for step in self.steps:
            total.update(step.counts)
        return {budget: total[budget] for budget in self.steps[0].counts}

    @property
    def answer(self) -> str:
        """The whole in one sentence."""
        allowed = sum(step.allowed for step in self.steps)
        rows = sum(step.stop - step.start for step in self.steps)
        return (
            f"{len(self.alarms)} alarm{'s' * (len(self.alarms) != 1)} in {rows:,} rows at {self.budget} "
            f"({say_number(allowed, 3)} allowed), by {len(self.steps)} model{'s' * (len(self.steps) != 1)}, each fitted on the rows before."
        )

    def to_rows(self) -> list[JsonDict]:
        """One dictionary per step."""
        return [step.to_json() for step in self.steps]

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Columns and rows, one per step: when, alarms, allowed, and the what-if over budgets."""
        budgets = list(self.counts)
        rows = [
            [
                str(step.start if step.start_time is None else step.start_time)[:16].replace("T", " "),
                step.stop - step.start,
                len(step.alarms),
                say_number(step.allowed, 3),
                *(step.counts[one] for one in budgets),
                reasons_of(step.alarms),
            ]
            for step in self.steps
        ]
        total = [len(self.alarms), say_number(sum(step.allowed for step in self.steps), 3), *self.counts.values()]
        rows.append(["all", sum(step.stop - step.start for step in self.steps), *total, ""])
        return ["from", "rows", "alarms", "allowed", *(f"at {one}" for one in budgets), "most often"], rows

    def __str__(self) -> str:
        columns, rows = self.table()
        return "\n".join([self.answer, "\t".join(columns), *("\t".join(map(str, row)) for row in rows)])


def reasons_of(alarms: Sequence[Alarm], most: int = 2) -> str:
    """The channels and kinds that come most often, in words: ``flow level (3)``."""
    kinds = Counter(f"{next(iter(one.channels), '')} {one.kind}".strip() for one in alarms)
    return ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common(most) if kind)


def backtest(
    series: SeriesLike,
    *,
    train: object = "14d",
    refit: object = "7d",
    budget: BudgetLike | None = None,
    budgets: Sequence[str] | None = None,
    detector: str | Scorer = registry.DEFAULT,
    **settings: Unpack[WatchSettings],
) -> Backtest:
    """Walk forward through a series: fit on the rows before, raise the alarms of the rows after, fit again.

    Parameters
    ----------
    series : Series, array, dataframe or file path
        Rows in the order of time.
    train : str, int or timedelta
        How much history each model is fitted on: ``"14d"``, or rows as a number or ``"5000 rows"``.
    refit : str, int or timedelta
        How long each model is used.
    budget : str, float or timedelta, optional
        As :class:`tisat.Watch` takes it.
    budgets : sequence of str, optional
        Budgets for the what-if; four around one per day unless given.
    detector : str or Detector
        A registered name.
    **settings
        Of :class:`tisat.Watch`.

    Returns
    -------
    Backtest
        Alarms of each stretch, and how many there would be at other budgets.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(6000, 2))
    >>> found = backtest(rows, train=2000, refit=2000, budget="1/500 rows", detector="last-value")
    >>> [(step.start, step.stop, step.trained) for step in found.steps]
    [(2000, 4000, 2000), (4000, 6000, 2000)]
    """
    whole = as_series(series, whose="backtest")
    length, every = _length(train, "train", whole), _length(refit, "refit", whole)
    seconds = whole.seconds
    clock = np.arange(len(whole), dtype=np.float64) if seconds is None or length[1] else np.asarray(seconds)
    beat = np.arange(len(whole), dtype=np.float64) if seconds is None or every[1] else np.asarray(seconds)
    begin = int(np.searchsorted(clock, clock[0] + length[0]))
    if begin >= len(whole):
        raise SeriesError(
            f"The series given to backtest must be longer than train={train!r}. It has {len(whole)} rows: give a shorter train."
        )
    base = registry.resolve(detector)() if isinstance(detector, str) else detector
    budget_asked = budget or (DEFAULT_BUDGET if whole.period is not None else DEFAULT_BUDGET_WITHOUT_CLOCK)
    ladder = list(budgets or (FACTORS if whole.period is not None else IN_ROWS))
    steps = []
    while begin < len(whole):
        end = int(np.searchsorted(beat, beat[begin] + every[0]))
        first = int(np.searchsorted(clock, clock[begin] - length[0]))
        steps.append(_step(whole, first, begin, max(end, begin + 1), base, budget_asked, ladder, settings))
        begin = max(end, begin + 1)
    return Backtest(whole.name, str(Budget.parse(budget_asked, period=whole.period)), tuple(steps))


def _length(span: object, name: str, series: Series) -> tuple[float, bool]:
    """A span of history, and whether it is in rows."""
    text = str(span).strip().removesuffix("s").removesuffix("row").strip()
    if text.isdigit() and int(text) > 0 and (isinstance(span, int) or str(span).strip() != text):
        return float(text), True
    seconds = nanoseconds_of(span, name=name, whose="backtest", must=MUST) * 1e-9
    if series.seconds is None:
        raise ParameterError.about(
            name, f"must be in rows where the series has no clock, '5000 rows'. Got {span!r} instead.", whose="backtest"
        )
    return seconds, False


def _step(
    series: Series,
    first: int,
    begin: int,
    end: int,
    detector: object,
    budget: BudgetLike | None,
    ladder: Sequence[str],
    settings: WatchSettings,
) -> Step:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        watch = Watch(clone(detector), budget=budget, **settings).fit(series[first:begin])
        lead = min(LEAD, begin)
        ahead = series[begin - lead : end]
        raised_alarms = [one for one in watch.alarms(ahead, any_period=True) if one.raised >= lead]
        counts = {}
        for other in ladder:
            tried = watch.recalibrated(other)
            counts[other] = sum(one.raised >= lead for one in tried.alarms(ahead, any_period=True))
    alarms = tuple(moved(one, begin - lead) for one in raised_alarms)
    target = watch.calibration.target
    return Step(
        begin, end, begin - first, series.stamp(begin), series.stamp(end - 1), watch.calibration.threshold,
        (end - begin) / target, alarms, counts,
    )  # fmt: skip


def moved(alarm: Alarm, rows: int) -> Alarm:
    """The alarm with its rows counted from the beginning of the whole series."""
    from dataclasses import replace

    places = {name: getattr(alarm, name) for name in ("raised", "onset", "cleared", "ongoing_since", "back")}
    further = tuple(replace(one, at=one.at + rows) for one in alarm.further)
    return replace(alarm, further=further, **{name: row + rows for name, row in places.items() if row is not None})
