"""The audit as a page: the answer in words, where alarms went right and wrong, every score beside its baseline score, the curve, the sweep.

Several sets of scores stand side by side, with intervals. It lays out what
:func:`tisat.metrics.audit` and :func:`tisat.metrics.comparison.compare` found and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tisat.metrics.audit import Audit
from tisat.metrics.comparison import PAIRS, Comparison
from tisat.metrics.statistics import fewest_units
from tisat.plotting.audit_tables import PAIRED, audit_layout, interval_words, threshold_words
from tisat.plotting.charts import Group, Mark, curves, lanes, line, panel, places, span, thinned
from tisat.plotting.page import Dot, Dots, Item, Key, Section, Table, render_page
from tisat.plotting.phrases import curve_group, terms_of
from tisat.utils.tables import DASH
from tisat.utils.types import Array

TIMELINES = 6  # series drawn
LISTED = 200  # rows of a list on the page
STANDINGS = {1: "better than every trivial baseline", 0: "not told apart from it", -1: "worse than it"}


def _timelines(audit: Audit, names: Sequence[str], scores: Sequence[Array]) -> list[Item]:
    """Scores with their threshold below a timeline, for the series with most trouble."""
    trouble = dict.fromkeys(names, 0)
    for name in [*(event.series for event in audit.missed), *(alarm.series for alarm in audit.false_alarms)]:
        trouble[name] += 1
    entities = sorted(names, key=lambda name: -trouble[name])[:TIMELINES]
    by_name = dict(zip(names, scores, strict=True))
    groups: list[Item] = [_timeline(audit, name, by_name[name]) for name in entities]
    if len(entities) < len(names):
        groups.append(f"These are the {len(entities)} series with most misses and false alarms, of {len(names)}.")
    return groups


def _timeline(audit: Audit, name: str, scores: Array) -> Group:
    x, rows = np.arange(len(scores), dtype=np.float64), thinned(len(scores))
    events = [event for event in audit.events if event.series == name]
    false = [alarm for alarm in audit.false_alarms if alarm.series == name]
    marks = [
        Mark(*span(x, one.start, one.stop), "found" if one.detected else "missed", "found" if one.detected else "missed", "events", f"event at {one.time or f'row {one.start}'}, {f'found after {one.delay:g}' if one.detected else 'missed'}")
        for one in events
    ] + [
        Mark(*span(x, one.time_step, one.time_step + 1), "false", "false alarm", "false alarms", f"false alarm at {one.time or f'row {one.time_step}'}")
        for one in false
    ]  # fmt: skip
    found = sum(event.detected for event in events)
    level = np.full(len(scores), audit.threshold)
    heading = f"{name}: {found} of {len(events)} events found, {len(false)} false alarm{'s' * (len(false) != 1)}"
    drawn = [line("score", "seen", scores, rows), line("threshold", "limit", level, rows)]
    return Group(
        places(x, rows),
        [lanes(heading, ("events", "false alarms")), panel("Scores against the threshold", drawn)],
        marks,
        axis={"label": "row"},
        switches=False,
        legend=("found", "missed", "false"),
    )


def _score_dots(audit: Audit) -> Dots:
    rows = [
        Dot(row.name, row.pooled, baseline_score=row.baseline_score)
        if row.interval is None
        else Dot(row.name, row.pooled, baseline_score=row.baseline_score, low=row.interval.low, high=row.interval.high)
        for row in audit.evaluation.rows
        if np.isfinite(row.pooled)
    ]
    return Dots(
        "Every score beside what the best trivial baseline gets under it",
        rows,
        caption=f"Dot: these scores. {interval_words(audit.evaluation.n_events, 'Line: their 95 % interval over events.')} Grey bar: the best trivial baseline. What counts is the distance to the bar, not the height.",
    )


def _sweep(audit: Audit) -> Group:
    where = list(range(len(audit.sweep)))
    lines = [("these scores, pooled", "c0", where, [p.pooled for p in audit.sweep])]
    if audit.evaluation.n_series > 1:
        lines.append(("per-series mean", "c1", where, [p.per_series_mean for p in audit.sweep]))
    lines.append(("best trivial baseline, pooled", "baseline", where, [p.baseline_score for p in audit.sweep]))
    return Group(
        [],
        [curves("SPD by the longest delay that counts", lines, range=[0, 1], ylabel="SPD", height=280)],
        axis={"label": "delta_max", "ticks": where, "names": [str(p.delta_max) for p in audit.sweep]},
        switches=False,
        caption="A longer tolerable delay raises SPD and its baseline score alike: choose it by need, not by the number it gives.",
    )


def _series_dots(audit: Audit, names: Sequence[str]) -> Dots:
    score = audit.evaluation.spd
    pairs = sorted(
        ((value, name) for value, name in zip(score.per_series, names, strict=True) if np.isfinite(value)), reverse=True
    )
    rows = [Dot("all, one threshold (pooled)", float(score), tone="ink"), Dot("mean of the series", score.per_series_mean, tone="ink")]  # fmt: skip
    return Dots(
        "SPD of each series with its own threshold, and of all with one",
        [*rows, *(Dot(name, value) for value, name in pairs)],
    )


def _answer(audit: Audit) -> str:
    evaluation = audit.evaluation
    n_found, false = len(audit.events) - len(audit.missed), len(audit.false_alarms)
    baseline_score = evaluation.curve.baselines.best
    spd = float(evaluation.spd)
    row = evaluation["SPD"]
    few = row.interval is not None and evaluation.n_events < fewest_units()
    worth = STANDINGS[row.standing] + (f", as always with fewer than {fewest_units()} events" if few else "")
    how = "chosen with the labels" if audit.threshold_source == "oracle" else audit.threshold_source
    return (
        f"{n_found} of {len(audit.events)} events found, {false} false alarm{'s' * (false != 1)} at threshold {audit.threshold:.4g} ({how}). "
        f"Over all thresholds SPD is {spd:.3f}, the best trivial baseline's {baseline_score:.3f}: {worth}."
    )


def _keys(audit: Audit) -> list[Key]:
    evaluation = audit.evaluation
    missed, false = len(audit.missed), len(audit.false_alarms)
    delays = [event.delay for event in audit.events if event.detected]
    keys = [
        Key(f"{len(audit.events) - missed} of {len(audit.events)}", "events found", "found"),
        Key(f"{missed}", f"event{'s' * (missed != 1)} missed", "missed"),
        Key(f"{false}", f"false alarm{'s' * (false != 1)}", "alarm"),
    ]
    if delays:
        unit = "rows" if isinstance(evaluation.curve.delta_max, int) else "seconds"
        keys.append(Key(f"{np.median(delays):.4g} {unit}", "delay of those found, median", "curve"))
    keys.append(Key(f"{float(evaluation.spd):.3f}", f"SPD; the best trivial baseline has {evaluation.curve.baselines.best:.3f}", "curve"))  # fmt: skip
    return keys


def _lists(audit: Audit) -> list[Item]:
    missed = [(event.series, event.time, event.start, event.stop) for event in audit.missed]
    false = [(alarm.series, alarm.time, alarm.time_step) for alarm in audit.false_alarms]
    content: list[Item] = []
    for title, columns, rows in (
        ("events missed", ("series", "time", "start", "stop"), missed),
        ("false alarms", ("series", "time", "time_step"), false),
    ):
        more = f"; the first {LISTED} are shown, the JSON has all" if len(rows) > LISTED else ""
        content.append(f"{len(rows)} {title}{more}.")
        if rows:
            content.append(Table(columns, rows[:LISTED]))
    return content


def _words(*names: str) -> Table:
    """The terms of a table with what they mean, below it: beside it they would hide its last columns."""
    return Table(("term", "what it means"), list(terms_of(*names)))


def audit_page(audit: Audit, *, names: Sequence[str], scores: Sequence[Array], command: str = "") -> str:
    """The page as text: self-contained HTML.

    Parameters
    ----------
    audit : Audit
    names, scores
        Those the audit was made from, for the timelines.
    command : str
        Printed at the foot.
    """
    evaluation = audit.evaluation
    rows = [
        (r.name, r.pooled, DASH if r.interval is None else r.interval.ends, r.per_series_mean, r.baseline_score, r.corrected, r.baseline)
        for r in evaluation.rows
    ]  # fmt: skip
    table = Table(
        (
            "score",
            "pooled",
            "95 % interval",
            "per-series mean",
            "baseline score",
            "chance-corrected",
            "best trivial baseline",
        ),
        rows,
        strong=(0,),
        caption=threshold_words([audit]),
    )
    words = _words("SPD", "baseline score", "chance-corrected", "oracle", "pooled", "per-series mean", "interval", "delta_max")  # fmt: skip
    baselines = Dots(
        f"SPD of each trivial baseline on these labels, delta_max {evaluation.curve.delta_max}",
        [
            Dot("these scores", float(evaluation.spd)),
            *(
                Dot(f"trivial baseline: {name}", float(score), tone="baseline")
                for name, score in evaluation.curve.baselines.named.items()
            ),
        ],
        caption="A trivial baseline's SPD is an area, like the one under the curve above.",
    )
    random_baseline = Table(
        ("random_baseline", "precision", "recall", "F1"),
        [
            ("p = 0.01", audit.random_baseline.precision, audit.random_baseline.recall, audit.random_baseline.f1),
            (
                f"p = {audit.best_random_baseline_probability:.3g}, the best",
                audit.best_random_baseline.precision,
                audit.best_random_baseline.recall,
                audit.best_random_baseline.f1,
            ),
        ],
        caption="Point-adjusted scores of an alarm at random on these labels, by closed form; p: how often it is on.",
    )
    sweep = Table(
        ("delta_max", "pooled", "per-series mean", "baseline score", "chance-corrected", "best trivial baseline"),
        [
            (str(p.delta_max), p.pooled, p.per_series_mean, p.baseline_score, p.corrected, p.baseline)
            for p in audit.sweep
        ],
    )
    beware = [(row.name, row.warning) for row in evaluation.rows if row.warning]
    curve = curve_group(
        [("these scores", "c0", evaluation.curve)],
        caption="Each threshold is a point: how late faults are found, and how many alarms are true. The area under the line is SPD.",
    )
    sections = [
        Section(
            f"What happened at threshold {audit.threshold:.6g} ({audit.threshold_source})",
            _timelines(audit, names, scores),
        ),
        Section("What the scores are worth", [_score_dots(audit), table, words]),
        Section("Precision against delay", [curve, baselines]),
        Section("How SPD moves with delta_max", [_sweep(audit), sweep]),
    ]
    if evaluation.n_series > 1:
        sections.append(Section("Pooled against per-series mean", [_series_dots(audit, names)]))
    sections += [
        Section("What a random baseline gets under point adjustment", [random_baseline]),
        Section("Each score in words", list(audit.verdict), folded=True),
        Section("Before you quote one of the scores", [Table(("score", "beware"), beware)]),
        Section("Every miss and every false alarm", _lists(audit)),
    ]
    lead = (
        f"{evaluation.n_series} series, {evaluation.n_rows:,} rows, {evaluation.n_events} events; an event counts as found within "
        f"delta_max {evaluation.curve.delta_max} of its beginning."
    )
    return render_page(
        "What these scores are worth", sections, lead=lead, answer=_answer(audit), keys=_keys(audit), command=command
    )


# ---------------------------------------------------------------------------------------------- several sets of scores


def comparison_page(audits: Mapping[str, Audit], comparison: Comparison, *, command: str = "") -> str:
    """Several sets of scores side by side, as self-contained HTML."""
    layout = audit_layout(audits, comparison)
    first = next(iter(audits.values())).evaluation
    method = "95 % intervals over events: Student's t with the standard error of a bootstrap."
    intervals = Table(
        ("score", "scores of", "value", "low", "high"),
        comparison.rows(),
        caption=f"{interval_words(first.n_events, method)} {threshold_words(list(audits.values()))}",
    )
    pairs = [
        Table(
            ("score", "first", "second", "first less second", "low", "high", "p"),
            [
                (d.score, d.first, d.second, d.interval.value, d.interval.low, d.interval.high, d.p)
                for d in comparison.differences
            ],
            caption=PAIRED,
        )
    ] * (len(audits) > PAIRS)  # of fewer, each pair has its sentence
    beware = Table(("score", "beware"), [(row.name, row.warning) for row in first.rows if row.warning])
    dots = [
        Dots(
            row.name,
            [
                Dot(name, audit.evaluation[row.name].pooled, baseline_score=audit.evaluation[row.name].baseline_score, tone=f"c{i % 8}", low=_end(comparison, row.name, name, "low"), high=_end(comparison, row.name, name, "high"))
                for i, (name, audit) in enumerate(audits.items())
            ],
            caption="Dot: the value, with its interval where there is one. Grey bar: the best trivial baseline." if row is first.rows[0] else "",
        )
        for row in first.rows
        if math.isfinite(row.pooled)
    ]  # fmt: skip
    table = Table(layout.headers, layout.rows, caption=layout.caption)
    words = _words("SPD", "baseline score", "oracle", "pooled", "interval", "delta_max")
    sections = [
        Section("Side by side", [*dots, table, words]),
        Section("How sure", [intervals, *pairs]),
        Section("Before you quote one of them", [beware]),
        *(Section(f"{name} in words", list(audit.verdict)) for name, audit in audits.items()),
    ]
    answer, *more = comparison.verdict
    lead = f"{', '.join(audits)}: {first.n_series} series, {first.n_rows:,} rows, {first.n_events} events."
    return render_page("Scores side by side", sections, lead=lead, answer=answer, more=more, command=command)


def _end(comparison: Comparison, score: str, name: str, which: str) -> float:
    found = comparison.intervals.get(score, {}).get(name)
    return math.nan if found is None else float(getattr(found, which))
