"""Is a budget met on a person's own file? Asked, supported, observed, and what more data would buy.

The first half of the file fits the detector and finds a threshold for each of a ladder of budgets; false alarms are counted on
the second half, which nothing has seen. The last line is about the whole file, as `tisat fit` would use it. Normal data
is assumed: a fault in the file counts as false alarms. This module draws and words; counting is elsewhere.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat import registry
from tisat.alarms.budget import Budget, BudgetLike
from tisat.alarms.calibration import Calibration, NormalEvidence, period_interval
from tisat.alarms.episodes import SUPPORT
from tisat.alarms.result import times
from tisat.alarms.rules import make_rule
from tisat.errors import CalibrationWarning, ParameterError, SeriesError
from tisat.plotting.page import Picture, Section, Table, figure_to_svg, render_page
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.extras import require
from tisat.utils.numbers import say_number
from tisat.utils.palette import ALARM, EXPECTED, LINE, SOFT
from tisat.utils.types import Params

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOCK = ("1/hour", "1/8h", "1/day", "1/week", "1/month", "1/year")  # the ladder where rows have times
COUNT = ("1/100 rows", "1/1000 rows", "1/10000 rows", "1/100000 rows")
GRID = 25  # budgets of the picture's curve


@dataclass(frozen=True)
class Step:
    """One budget of the ladder: the threshold from the first half, and what came of it in the second."""

    budget: str
    period: float  # rows between two false alarms
    threshold: float
    extrapolated: float  # how much rarer than what the first half can support
    alarms: int  # counted in the second half
    time_steps: int
    low: float  # interval of the observed period
    high: float | None
    missing: float  # rows that are missing from the whole file to support it; 0: none

    @property
    def observed(self) -> float:
        """Rows between two alarms of the second half; infinite without any."""
        return self.time_steps / self.alarms if self.alarms else math.inf

    @property
    def verdict(self) -> str:
        """Whether the budget was met, as far as so much data can tell."""
        if self.alarms <= self.time_steps / self.period:
            return "met"
        return "exceeded" if self.high is not None and self.high < self.period else "exceeded, within chance"


@dataclass(frozen=True)
class OwnStudy:
    """A person's file, one rule and one method."""

    name: str
    detector: str
    rule: str
    method: str
    period: float | None  # sampling period, seconds
    rows: int
    half: Calibration  # of the first half, for the budget asked for
    whole: Calibration  # of the whole file, for the budget asked for
    ladder: tuple[Step, ...]
    curve: tuple[Step, ...]  # finer, for the picture

    @property
    def words(self) -> tuple[str, ...]:
        """The results in words, one sentence each."""
        lines = [f"The whole file, {self.rows} rows. {' '.join(self.whole.words)}"]
        lines += [
            f"With {_duration(step.missing, self.period)} more: {step.budget}."
            for step in self.ladder
            if step.missing > 0
        ]
        return tuple(lines)


def _duration(rows: float, period: float | None) -> str:
    text = Budget("", rows, period).say(rows)
    return text.split("(")[1].rstrip(")") if "(" in text else f"{rows:.0f} rows"


def own_study(
    given: SeriesLike,
    *,
    detector: str = registry.DEFAULT,
    rule: str = "excess",
    method: str = "auto",
    budget: BudgetLike | None = None,
    tail: float = 0.5,
    **options: object,
) -> OwnStudy:
    """Fit on the beginning of a normal series, count on its end, and say what the whole is worth."""
    series = as_series(given, whose="own_study")
    ladder = CLOCK if series.period is not None else COUNT
    possible = _possible(ladder, series.period)
    usual = ladder[2 if series.period is not None else 1]
    other = next((one for one in possible if str(one) == usual), possible[0])
    budget_asked = other if budget is None else Budget.parse(budget, period=series.period)
    cut = int(len(series) * (1.0 - tail))
    try:
        normal_evidence, evidence = _evidence(series, slice(0, cut), detector, rule, options)
    except SeriesError as error:
        raise SeriesError(
            f"The first half of the rows of {series.name!r} must be enough to learn from; the other half is counted. It is not: {error}"
        ) from None
    everything, _ = _evidence(series, slice(0, len(series)), detector, rule, options)
    wanted = {str(one): one for one in (*possible, budget_asked)}
    steps = [
        _step(normal_evidence, evidence, one, method, everything.length)
        for one in sorted(wanted.values(), key=lambda one: one.time_steps)
        if one.time_steps > 1.0
    ]
    periods = np.geomspace(20.0, max(30.0 * normal_evidence.length, 2 * budget_asked.time_steps), GRID)
    curve = [
        _step(
            normal_evidence,
            evidence,
            Budget(f"1/{period:.0f} rows", float(period), series.period),
            method,
            everything.length,
        )
        for period in periods
    ]
    return OwnStudy(
        series.name, detector, rule, method, series.period, len(series), normal_evidence.calibrate(budget_asked, method=method),
        everything.calibrate(budget_asked, method=method), tuple(steps), tuple(curve),
    )  # fmt: skip


def _possible(ladder: Sequence[str], period: float | None) -> list[Budget]:
    """The budgets of a ladder that leave more than one row between two alarms."""
    possible = []
    for step in ladder:
        with contextlib.suppress(ParameterError):
            possible.append(Budget.parse(step, period=period))
    return possible


def _evidence(series: Series, train: slice, detector: str, rule: str, options: Params) -> tuple[NormalEvidence, Any]:
    """Normal evidence of the training rows, and the evidence of what follows them (None: nothing does)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = registry.resolve(detector)().fit(series[train])
        alarm_rule = make_rule(rule, **options)
        known = NormalEvidence(alarm_rule, model.score_points(model.normal_), breaks=model.normal_breaks_)
        if train.stop >= len(series):
            return known, None
        return known, alarm_rule.evidence(model.score_points(model.points(series)))[train.stop :]


def _step(known: NormalEvidence, evidence: Any, budget: Budget, method: str, rows: int) -> Step:
    calibration = known.calibrate(budget, method=method)
    trace = known.rule.accumulate(evidence, threshold=calibration.threshold)
    alarms = int((trace.active & ~np.append(False, trace.active[:-1])).sum())
    time_steps = int((~np.isnan(trace.statistic)).sum())
    low, high = period_interval(alarms, time_steps)
    return Step(
        str(budget), budget.time_steps, calibration.threshold, calibration.extrapolated, alarms, time_steps, low, high,
        max(SUPPORT * budget.time_steps - rows, 0.0),
    )  # fmt: skip


def rows_of(study: OwnStudy) -> tuple[list[str], list[list[object]]]:
    """The ladder as a table: columns and rows."""
    columns = ["budget", "h", "supported", "false", "allowed", "one in (95 %)", "result"]
    rows = [
        [
            step.budget,
            say_number(step.threshold, 3),
            "yes" if step.extrapolated <= 1.0 else f"no, {times(step.extrapolated)} rarer",
            step.alarms,
            say_number(step.time_steps / step.period),
            f"{step.low:.0f} or more" if step.high is None else f"{step.low:.0f} to {step.high:.0f}",
            step.verdict,
        ]
        for step in study.ladder
    ]
    return columns, rows


def draw(study: OwnStudy) -> Figure:
    """One picture: the period observed against the period asked for, both in rows.

    On the line, promise is fact.
    """
    module = require("matplotlib.figure", whose="The false-alarm picture")
    figure: Figure = module.Figure(figsize=(7.2, 4.6), layout="constrained")
    axis = figure.subplots()
    periods = np.array([step.period for step in study.curve])
    steps = [step for step in study.curve if step.alarms]
    top = max(periods[-1], *(step.low for step in study.curve))
    axis.axvspan(study.half.supported, periods[-1], color=LINE, linewidth=0)
    axis.text(study.half.supported, top, " extrapolated", va="top", fontsize=9, color=SOFT)
    axis.plot(periods, periods, color=SOFT, linewidth=1.0, linestyle="--")
    axis.text(periods[1], periods[1] * 1.25, "as asked", rotation=33, fontsize=9, color=SOFT, va="bottom")
    low = [step.low for step in study.curve]
    high = [min(step.high, 3 * top) if step.high is not None else 3 * top for step in study.curve]
    axis.fill_between(periods, low, high, color=EXPECTED, alpha=0.18, linewidth=0)
    axis.plot(
        [s.period for s in steps], [s.observed for s in steps], color=EXPECTED, linewidth=2.0, marker="o", markersize=3
    )
    axis.axvline(study.half.target, color=ALARM, linewidth=1.2)
    axis.text(study.half.target, periods[0], f" {study.half.budget}", color=ALARM, fontsize=9, va="bottom")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(periods[0], periods[-1])
    axis.set_ylim(periods[0], top)
    axis.set_xlabel("asked: rows between two false alarms")
    axis.set_ylabel("observed in the second half, with its 95 % interval")
    axis.set_title(f"{study.name or 'series'}: {study.detector}, {study.rule} rule by {study.method}", fontsize=10)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    return figure


def page(studies: Sequence[OwnStudy], *, command: str = "") -> str:
    """One page, one picture a method."""
    sections = []
    for study in studies:
        columns, rows = rows_of(study)
        caption = (
            "The first half of the file sets the thresholds; false alarms are counted in the second half. Above the dashed line "
            "there are fewer than asked for, below it more. Grey: rarer than the first half can support."
        )
        sections.append(
            Section(
                f"{study.name or 'series'}, {study.rule} by {study.method}",
                [*study.words, Picture(figure_to_svg(draw(study)), caption), Table(columns, rows)],
            )
        )
    return render_page("False alarms: asked, supported, observed", sections, command=command)
