"""The budget's ledger: how many false alarms were allowed, how many alarms were raised, and what people said of them.

A budget bounds alarms on normal data; it is no quota. Being under it is no room left: true alarms come on top.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tisat_serve.engine.row_encoding import unpack_brief
from tisat_serve.folder.archive import nanoseconds
from tisat_serve.structs import GroupBudget, Ledger, LedgerLine

if TYPE_CHECKING:
    from tisat_serve.engine.engine import Engine
    from tisat_serve.views.fleet_view import FleetView

CONFIDENCE = 0.95
LABELS = ("true", "false", "expected", "new normal", "unmarked")


def poisson_interval(count: int) -> tuple[float, float]:
    """Exact (Garwood) 95 % interval of the mean of a Poisson count.

    Examples
    --------
    >>> low, high = poisson_interval(0)
    >>> low, round(high, 2)
    (0.0, 3.69)
    """
    from scipy.special import gammaincinv

    tail = (1.0 - CONFIDENCE) / 2.0
    low = float(gammaincinv(count, tail)) if count else 0.0
    return low, float(gammaincinv(count + 1, 1.0 - tail))


def judged_rows(engine: Engine, start: int, stop: int) -> dict[str, int]:
    """Rows judged of each entity in ``[start, stop)``: from the sums of pieces, and row by row where one is cut."""
    store = engine.store
    with engine.lock:
        names = {cell.id: name for name, cell in engine.cells.items()}
        rest = {name: cell.brief() for name, cell in engine.cells.items() if cell.times}
        whole = store.read(
            "SELECT entity, sum(judged) FROM history WHERE last >= ? AND first >= ? AND last < ? GROUP BY entity",
            (start, start, stop),
        )
        cut = store.read(
            "SELECT entity, rows, brief FROM history WHERE last >= ? AND first < ? AND (first < ? OR last >= ?)",
            (start, stop, start, stop),
        )
    counts: Counter[str] = Counter()
    for number, judged in whole:
        if number in names:
            counts[names[number]] += int(judged)
    briefs = [(names[number], unpack_brief(content, rows)) for number, rows, content in cut if number in names]
    for name, brief in [*briefs, *rest.items()]:
        counts[name] += int(((brief.status == 0) & (brief.times >= start) & (brief.times < stop)).sum())
    return counts


def _line(name: str, rows: int, allowed: float, words: Counter[str], suppressed: int) -> LedgerLine:
    n_raised = sum(words.values())
    low, high = poisson_interval(n_raised)
    false_low, false_high = poisson_interval(words["false"])
    return LedgerLine(
        name=name,
        rows=rows,
        allowed=allowed,
        raised=n_raised,
        **{word.replace(" ", "_"): words[word] for word in LABELS},
        suppressed=suppressed,
        raised_low=low,
        raised_high=high,
        false_low=false_low,
        false_high=false_high,
        over=false_low > allowed,
        doubt=poisson_interval(words["false"] + words["unmarked"])[0] > allowed,
    )


def ledger(view: FleetView, *, start: float | None = None, stop: float | None = None) -> Ledger:
    """Allowed, raised, true, false, unmarked: per entity, per group and of all.

    Since the beginning of history unless told.
    """
    engine = view.engine
    first, last = nanoseconds(start, stop)
    rows = judged_rows(engine, first, last)
    words: dict[str, Counter[str]] = {name: Counter() for name in engine.cells}
    rows_held: Counter[str] = Counter()
    query = (
        "SELECT entity, suppressed, coalesce((SELECT word FROM labels WHERE alarm = alarms.id ORDER BY labels.id DESC LIMIT 1), 'unmarked') "
        "FROM alarms WHERE sort = 'statistic' AND raised >= ? AND raised < ?"
    )
    for entity, suppressed, word in view.store.read(query, (first, last)):
        if entity in words:
            words[entity][word] += 1
            rows_held[entity] += bool(suppressed)
    lines: list[LedgerLine] = []
    sums: dict[str, list[tuple[int, float, Counter[str], int]]] = {name: [] for name in engine.groups}
    for name, cell in engine.cells.items():
        target = engine.groups[cell.group].watches[cell.calibration].calibration.target
        item = (rows.get(name, 0), rows.get(name, 0) / target, words[name], rows_held[name])
        lines.append(_line(name, *item))
        sums[cell.group].append(item)

    def total(name: str, items: list[tuple[int, float, Counter[str], int]]) -> LedgerLine:
        rows, allowed, words, rows_held = zip(*items, strict=True) if items else ((), (), (), ())
        return _line(name, sum(rows), sum(allowed, 0.0), sum(words, Counter()), sum(rows_held))

    return Ledger(
        start=start,
        stop=stop,
        fleet=total("all", [item for items in sums.values() for item in items]),
        groups=[total(name, items) for name, items in sums.items()],
        entities=sorted(lines, key=lambda line: (-(line.raised - line.allowed), line.name)),
        budgets=budgets_of(view),
    )


def budgets_of(view: FleetView) -> list[GroupBudget]:
    """Budget of each group: target, supported, extrapolated."""
    budgets = []
    for group in view.engine.groups.values():
        calibration = group.watches[group.calibration].calibration
        budgets.append(
            GroupBudget(
                group=group.name,
                budget=calibration.budget,
                threshold=calibration.threshold,
                asked=calibration.target,
                supported=calibration.supported,
                extrapolated=calibration.extrapolated,
                period=group.watch.period,
                entities=len(view.engine.entities.names_in(group.name)),
                rule=group.watch.rule.name,
                sentences=list(calibration.words),
            )
        )
    return budgets
