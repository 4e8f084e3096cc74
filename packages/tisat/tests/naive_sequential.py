"""Reference implementations of the alarm layer, from the definitions: loops allowed, numpy tricks forbidden."""

import math
from collections.abc import Sequence
from typing import Any


def kth_distance(query: Sequence[float], points: Sequence[Sequence[float]], k: int) -> float:
    distances = []
    for point in points:
        total = 0.0
        for a, b in zip(query, point, strict=True):
            total += (a - b) * (a - b)
        distances.append(math.sqrt(total))
    return sorted(distances)[k - 1]


def cusum(evidence: Sequence[float], threshold: float, end: str, cooldown: int) -> list[tuple[float | None, bool, int]]:
    """(statistic, active, onset) row by row; None for an unknown statistic."""
    out: list[tuple[float | None, bool, int]] = []
    s, quiet, on, left = 0.0, 0, False, 0
    for t, e in enumerate(evidence):
        if math.isnan(e):
            s, quiet, on, left = 0.0, t, False, 0
            out.append((None, False, t))
        elif left > 0:
            left -= 1
            quiet = t
            out.append((0.0, True, t))
        else:
            s = max(s + e, 0.0)
            if s == 0:
                quiet = t
            if end == "recovery":
                s = min(s, threshold)
                on = s >= threshold or (on and s > 0)
                out.append((s, on, quiet))
            else:
                crossed = s >= threshold
                if end == "endless":
                    quiet = t if on and not crossed else quiet
                    on = crossed
                out.append((s, crossed, quiet))
                if crossed and end != "endless":
                    s, quiet = 0.0, t
                    left = cooldown if end == "cooldown" else 0
    return out


def window_sum(
    evidence: Sequence[float], threshold: float, length: int, hold: int
) -> list[tuple[float | None, bool, int]]:
    """(statistic, active, onset); None for an unknown statistic. Sums are exact, so compare with a tolerance."""
    out: list[tuple[float | None, bool, int]] = []
    since: list[float] = []
    quiet, on = 0, False
    for t, e in enumerate(evidence):
        if math.isnan(e):
            since, quiet, on = [], t, False
            out.append((None, False, t))
            continue
        since.append(e)
        sums = [math.fsum(since[max(0, i - length + 1) : i + 1]) for i in range(len(since))]
        statistic = max(sums[-hold:])
        was, on = on, statistic >= threshold
        nothing = (
            sums[-1] <= 0 if length > 1 else not on
        )  # of a plain threshold, an alarm begins after the last row below
        if nothing or (was and not on):
            quiet = t
        out.append((statistic, on, quiet))
    return out


def excess(
    scores: Sequence[float],
    *,
    level: float,
    centre: float,
    quantile: float,
    clip: float,
    lag: int,
    window: int,
    warm: int,
    enter: int,
    gap: int,
    lasting: int,
    gate: float = 0.0,
) -> Any:
    """Evidence of each score, from the definition."""
    past: list[float] = []
    raw: list[float] = []
    out = []
    above: list[int] = []  # places, among the known scores, of this excess's scores above the reference
    changed = None
    rest = level
    for score in scores:
        if math.isnan(score):
            out.append(math.nan)
            continue
        old = sorted(past[: max(0, len(past) - lag)][-window:])
        whole = sorted(old + [rest] * (min(warm, window) - len(old)))
        reference = max(level, whole[math.ceil(quantile * len(whole)) - 1])
        spread = reference - centre if reference > centre else 1.0
        out.append(max((score - reference) / spread, 0.0))
        entering = min(score, centre + clip * spread)
        here = len(raw)
        raw.append(score)
        if score > reference:
            if above and here - above[-1] - 1 > gap:
                above = []
            above.append(here)
            if len(above) > enter and score > centre + gate * spread:
                entering = reference
            if here - above[0] + 1 >= lasting:
                third = max(lasting // 3, 1)
                starts = [len(raw) - lasting + min(k * third, lasting - third) for k in range(3)]
                thirds = [sorted(raw[start : start + third]) for start in starts]
                rest = max(level, min(one[math.ceil(quantile * third) - 1] for one in thirds))
                past = [min(one, rest) for one in raw[-min(lasting, window + lag) :]]
                above, changed = [], len(raw)
                continue
        due = changed is not None and (len(raw) - changed) % lasting == 0
        if due and sum(one > level for one in raw[-lasting:]) <= 0.05 * lasting:
            past, above, changed, rest = raw[-min(lasting, window + lag) :], [], None, level
            continue
        past.append(entering)
    return out


def compressed_sum(rows: Sequence[Sequence[float]], *, length: int, hold: int, unit: float) -> Any:
    """The statistic of rows of evidence, one number a view, none unknown."""
    totals = []
    for i in range(len(rows)):
        last = rows[max(0, i - length + 1) : i + 1]
        totals.append(sum(math.log(1.0 + math.fsum(row[v] for row in last) / unit) for v in range(len(rows[0]))))
    return [max(totals[max(0, i - hold + 1) : i + 1]) for i in range(len(totals))]
