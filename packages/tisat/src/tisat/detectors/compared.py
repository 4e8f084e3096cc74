"""Compare detectors on data of your own that has no labels: the budget on unseen rows, injected faults, and the cost.

Each detector is fitted on the beginning of a normal series, behind the same rule and budget. On the end, which it has not seen, alarms are
counted as they are. Faults of known kinds are then put in one at a time, each into rows that are otherwise as they were: no alarm of one fault
is still on when the next begins. A fault is found where an alarm is raised at a row of it at which none is on without the fault, or where an
alarm that is on names a channel of the fault. It says how detectors do on *these* faults, not on those that will come.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from sklearn.base import clone

from tisat.alarms.alarms import Alarms
from tisat.alarms.budget import Budget, BudgetLike
from tisat.alarms.calibration import period_interval
from tisat.datasets.synthetic import KINDS, SHORTEST_STRETCH, Fault, inject_faults
from tisat.detectors import make
from tisat.detectors.suggestions import suggest
from tisat.errors import CalibrationWarning, ParameterError, SeriesError, TisatError
from tisat.gap_filling import carry_forward
from tisat.io.columns import listed
from tisat.registry import check_detector
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.extras import require
from tisat.utils.html import table
from tisat.utils.numbers import say_number
from tisat.utils.palette import ALARM, LINE
from tisat.utils.progress import progress
from tisat.utils.types import Array, JsonDict, Params
from tisat.utils.validation import check_integer, check_real
from tisat.watch.protocols import CommonSettings, Scorer
from tisat.watch.walk_forward import LEAD
from tisat.watch.watch import Watch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OF_SEVERAL = ("broken correlation",)  # kinds of fault that a single channel cannot have
SLOW = ("tisat",)  # suggestions that take minutes: compared where they are named
LATE = 5  # rows after a fault within which an alarm still is about it
WARM_UP = 600  # rows of the run that is not timed
BEFORE = 1000  # rows before a fault that a detector sees first: its warm-up
Detectors = Sequence[str | Scorer] | Mapping[str, str | Scorer]
BEYOND = "exceeded beyond chance"
HONEST = "Injected faults say how detectors do on these kinds; differences of one or two faults mean nothing."


@dataclass(frozen=True)
class ComparedDetector:
    """The results of one detector."""

    detector: str
    false_alarms: int = 0  # on the rows as they are
    allowed: float = 0.0  # by the budget, on so many rows
    budget: str = ""  # met, exceeded, or exceeded beyond chance
    found: int = 0
    faults: int = 0
    by_kind: dict[str, tuple[int, int]] | None = None  # kind -> found, injected
    fit_seconds: float = 0.0  # CPU
    row_microseconds: float = 0.0  # CPU, per row scored
    trouble: str = ""  # why there is nothing


@dataclass(frozen=True)
class DetectorComparison:
    """Detectors side by side, those that found most first. ``print`` it, ``plot`` it."""

    name: str
    budget: str
    trained: int  # rows
    scored: int  # rows
    detectors: tuple[ComparedDetector, ...]

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Columns and rows, one per detector."""
        kinds = self._kinds()
        head = ["detector", "false alarms", "allowed", "budget", "found", *kinds, "fit, s", "per row, us"]
        rows: list[list[object]] = []
        for row in self.detectors:
            if row.trouble:
                rows.append([row.detector, "", "", row.trouble, "", *("" for _ in kinds), "", ""])
                continue
            parts = ["{} of {}".format(*(row.by_kind or {}).get(kind, (0, 0))) for kind in kinds]
            rows.append(
                [row.detector, str(row.false_alarms), say_number(row.allowed, 3), row.budget, f"{row.found} of {row.faults}",
                 *parts, say_number(row.fit_seconds), say_number(row.row_microseconds, 3)]
            )  # fmt: skip
        return head, rows

    def _kinds(self) -> list[str]:
        return [kind for kind in KINDS if any(kind in (one.by_kind or {}) for one in self.detectors)]

    @property
    def answer(self) -> str:
        """The whole in two sentences."""
        where = f"Fitted on {self.trained:,} rows, compared on the {self.scored:,} after them, budget {self.budget}."
        good = [one for one in self.detectors if not one.trouble]
        if not good:
            return f"{where} Not one detector could be fitted."
        met = any(one.budget == "met" for one in good)
        fair = [one for one in good if one.budget != BEYOND] if met else good
        best = fair[0]
        of_whom = "" if len(fair) == len(good) else "Of those that did not exceed it beyond chance, "
        if not best.found:
            return f"{where} No injected fault was found{' by those that did not exceed it beyond chance' if of_whom else ''}."
        alike = [one for one in fair if one.found == best.found]
        most = " most:" if len(good) > 1 else ""
        rider = ", but no detector met the budget"
        if met:
            rider = "" if any(one.budget == "met" for one in alike) else ", but exceeded the budget"
        names = listed([one.detector for one in alike])
        return f"{where} {of_whom}{names} found{most} {best.found} of {best.faults} injected faults{rider}."

    @property
    def note(self) -> str:
        """The limits of the comparison."""
        good = [one for one in self.detectors if not one.trouble]
        if not good or any(one.budget == "met" for one in good) or self.scored < self.trained:
            return HONEST
        return f"{HONEST} Where the last rows differ from the first, a shorter tail is fairer: tisat.compare(..., tail=0.25)."

    def to_json(self) -> JsonDict:
        """Plain values."""
        return asdict(self) | {"answer": self.answer}

    def __str__(self) -> str:
        columns, rows = self.table()
        texts = [columns, *([str(cell) for cell in row] for row in rows)]
        wide = [max(len(row[i]) for row in texts) for i in range(len(columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip() for row in texts]
        return "\n".join([self.answer, *lines, self.note])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        columns, rows = self.table()
        return table(self.answer, columns, rows, note=self.note)

    def plot(self) -> Figure:
        """Draw the share of faults found by kind, and false alarms beside what the budget allows; a matplotlib figure."""
        figure_module = require("matplotlib.figure", whose="A picture of a comparison")
        compared = [one for one in self.detectors if not one.trouble]
        if not compared:
            raise ParameterError("A picture of a comparison must have a detector to show. Not one could be fitted.")
        kinds, names = self._kinds(), [one.detector for one in compared]
        figure: Figure = figure_module.Figure(figsize=(10.0, 1.6 + 0.4 * len(compared)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(2.2, 1.0))
        counts = [[(one.by_kind or {}).get(kind, (0, 0)) for kind in kinds] for one in compared]
        shares = np.array([[found / max(put, 1) for found, put in row] for row in counts])
        left.imshow(shares, cmap="Greens", vmin=0.0, vmax=1.3, aspect="auto")
        for i, row in enumerate(counts):
            for j, (found, put) in enumerate(row):
                left.text(j, i, f"{found}/{put}", ha="center", va="center", fontsize=8)
        left.set_xticks(range(len(kinds)), kinds, rotation=30, ha="right", fontsize=8)
        left.set_yticks(range(len(names)), names, fontsize=8)
        left.set_title("injected faults found", fontsize=9)
        right.barh(range(len(compared)), [one.false_alarms for one in compared], color=LINE)
        right.axvline(compared[0].allowed, color=ALARM, linestyle="--", linewidth=0.8)
        right.set_title(f"false alarms; dashed: {self.budget}", fontsize=9)
        right.tick_params(labelsize=8)
        return figure


def compare(
    series: SeriesLike,
    detectors: Detectors | None = None,
    *,
    budget: BudgetLike | None = None,
    tail: float = 0.5,
    n_faults: int = 21,
    random_state: int = 0,
    **settings: Unpack[CommonSettings],
) -> DetectorComparison:
    """Compare detectors on a normal series: the budget met on unseen rows, injected faults found by kind, and the cost.

    Each fault is put in alone. It is found where an alarm is raised at a row of it at which none is on without the fault, or
    where an alarm that is on names a channel of it.

    Parameters
    ----------
    series : Series, array, dataframe or file path
        Normal.
    detectors : sequence of names or detectors, or mapping of a name of yours to one, optional
        Those that :func:`tisat.suggest` names unless given, but for networks.
    budget : str, float or timedelta, optional
        As :class:`tisat.Watch` takes it.
    tail : float
        Share of the rows, at the end, that nothing is fitted on.
    n_faults : int
        How many faults are put in, as evenly over seven kinds as it goes; over six where there is one channel, whose correlation cannot break.
    random_state : int
        Seed of the faults.
    **settings
        Of :class:`tisat.Watch`, the same for all.

    Returns
    -------
    DetectorComparison
        One row for each detector.

    Examples
    --------
    >>> from tisat.datasets.synthetic import make_plant
    >>> found = compare(make_plant(n_train=4000).train, ["random-guess", "mahalanobis"], budget="1/500 rows", n_faults=7)
    >>> [one.detector for one in found.detectors], found.detectors[0].faults
    (['mahalanobis', 'random-guess'], 7)
    """
    if isinstance(series, list | tuple) and any(isinstance(one, Series) or hasattr(one, "columns") for one in series):
        raise SeriesError(f"The series given to compare must be one series. Got {len(series)} instead; compare each.")
    whole = as_series(series, whose="compare").without_labels()
    share = check_real(tail, "tail", "compare", above=0.0, below=1.0)
    fault_count = check_integer(n_faults, "n_faults", "compare", minimum=1)
    cut = round((1.0 - share) * len(whole))
    if len(whole) - cut < 2 * SHORTEST_STRETCH or cut < 2:
        raise SeriesError(
            f"The series given to compare must have {2 * SHORTEST_STRETCH} rows after its first {1 - share:.0%}. Got {len(whole) - cut} instead."
        )
    params_of = _chosen(whole[:cut], detectors)
    lead = min(LEAD, cut)
    injected = _injected(whole[cut:], fault_count, random_state)
    _warm_up(whole[:cut], settings)
    results = []
    with progress("comparing", total=len(params_of) * (2 + len(injected))) as bar:
        for name, detector in params_of.items():
            bar.advance(0, note=name)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CalibrationWarning)
                    results.append(_compare_one(name, detector, whole, cut, lead, injected, budget, settings, bar))
            except TisatError as error:
                bar.advance(2 + len(injected))
                results.append(ComparedDetector(name, trouble=str(error)))
    results.sort(key=lambda one: (bool(one.trouble), -one.found, one.false_alarms))
    asked = Watch("last-value", budget=budget, **settings)
    period = whole.period if asked.period is None else asked.period
    said = budget or ("1/10000 rows" if period is None else "1/day")
    return DetectorComparison(whole.name, str(Budget.parse(said, period=period)), cut, len(whole) - cut, tuple(results))


def _chosen(train: Series, detectors: Detectors | None) -> Params:
    """The detectors by the names they are listed under.

    Unknown names are refused before anything is fitted.
    """
    if detectors is None:
        listed = [one for one in suggest(train).detectors if one.detector not in SLOW]
        return {one.detector: make(one.detector, **one.parameters) for one in listed}
    if isinstance(detectors, str) or not detectors:
        raise ParameterError(
            f"The 'detectors' parameter of compare must be a list of names or detectors. Got {detectors!r} instead."
        )
    if not isinstance(detectors, Mapping):
        detectors = {one if isinstance(one, str) else repr(one): one for one in detectors}
    params = {}
    for name, one in detectors.items():
        if not isinstance(one, str):
            check_detector(one, whose="compare")
        params[name] = make(one) if isinstance(one, str) else clone(one)
    return params


def _warm_up(train: Series, settings: CommonSettings) -> None:
    """Import and compile what all detectors share, so that the first of them does not pay for it."""
    rows = train[:WARM_UP]
    with contextlib.suppress(TisatError), warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        Watch("last-value", budget="1/100 rows", **settings).fit(rows).alarms(rows, any_period=True)


def _injected(tail: Series, wanted: int, seed: int) -> list[tuple[Fault, Array]]:
    """Faults of all kinds that so many channels can have, each with the values of its rows.

    What is missing stays missing.
    """
    missing = np.isnan(tail.values)
    values = np.array(tail.values, dtype=np.float64)
    if missing.any():
        filled = carry_forward(values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            middle = np.nan_to_num(np.nanmedian(values, axis=0))
        values = np.where(np.isnan(filled), middle, filled)
    kinds = [kind for kind in KINDS if kind not in OF_SEVERAL or values.shape[1] > 1]
    at_once = max(1, min(len(kinds), wanted, len(tail) // SHORTEST_STRETCH))
    injected = []
    for number in range(-(-wanted // at_once)):
        count = min(at_once, wanted - number * at_once)
        faulty, faults = inject_faults(values, n_faults=count, kinds=kinds, random_state=seed + number)
        for fault in faults:
            rows = slice(fault.start, fault.stop)
            injected.append((fault, np.where(missing[rows], np.nan, faulty.values[rows])))
    return injected


def _compare_one(
    name: str,
    detector: Any,
    whole: Series,
    cut: int,
    lead: int,
    injected: Sequence[tuple[Fault, Array]],
    budget: BudgetLike | None,
    settings: CommonSettings,
    bar: Any,
) -> ComparedDetector:
    begun = time.process_time()
    watch = Watch(detector, budget=budget, **settings).fit(whole[:cut])
    fitted = time.process_time() - begun
    bar.advance(note=name)
    begun = time.process_time()
    raised = watch.alarms(whole[cut - lead :], any_period=True).raised
    clean = raised[raised >= lead]
    spent = time.process_time() - begun
    bar.advance(note=name)
    kinds: dict[str, list[int]] = {}
    for fault, values in injected:
        counted = kinds.setdefault(fault.kind, [0, 0])
        begin, end = max(0, cut + fault.start - BEFORE), min(len(whole), cut + fault.stop + LATE)
        counted[0] += _finds(watch, whole[begin:end], fault, values, cut + fault.start - begin)
        counted[1] += 1
        bar.advance(note=name)
    rows = len(whole) - cut
    allowed = rows / watch.calibration.target
    high = period_interval(len(clean), rows)[1]
    exceeded = BEYOND if high is not None and high < watch.calibration.target else "exceeded"
    return ComparedDetector(
        name, len(clean), allowed, "met" if len(clean) <= allowed else exceeded,
        sum(found for found, _ in kinds.values()), sum(put for _, put in kinds.values()),
        {kind: (found, put) for kind, (found, put) in kinds.items()}, fitted, 1e6 * spent / (rows + lead),
    )  # fmt: skip


def _finds(watch: Watch, rows: Series, fault: Fault, values: Array, start: int) -> bool:
    """Whether alarms report a fault whose ``values`` are put into the rows from ``start`` on."""
    faulty = np.array(rows.values)
    faulty[start : start + len(values)] = values
    alarms = watch.alarms(replace(rows, values=faulty), any_period=True)
    raised = alarms.raised[alarms.raised >= start]
    joined = _joined(alarms, start)
    if not len(raised) and not joined:
        return False
    clean = watch.alarms(rows, any_period=True)  # an alarm that is on anyway is not about the fault
    hit = {rows.channels[c] for c in fault.channels}
    return not clean.active[raised].all() or bool(hit & joined - _joined(clean, start))


def _joined(alarms: Alarms, start: int) -> set[str]:
    """The channels that joined an alarm from ``start`` on."""
    later = (one for alarm in alarms for one in alarm.further if one.at >= start)
    return {reason.channel for one in later for reason in one.reasons}
