"""Audits as tables: one or several sets of scores, each score beside its fool, with intervals; for a paper, a spreadsheet or a page.

It lays out what :func:`tisat.metrics.audit` and :func:`tisat.benchmark.comparison.compare` found and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tisat.benchmark.comparison import Comparison
from tisat.benchmark.layout import DASH, Layout, csv_text
from tisat.metrics.audit import Audit
from tisat.report.page import Dot, Dots, Section, Table, render_page
from tisat.report.words import terms_of


def _three(value: float) -> str:
    return DASH if math.isnan(value) else f"{value:.3f}"


def audit_layout(audits: Mapping[str, Audit], comparison: Comparison) -> Layout:
    """One row for each score, one column for each set of scores, the best fool at the end; the best of a row is not marked: intervals say what differs."""
    first = next(iter(audits.values())).evaluation
    rows = []
    for row in first.rows:
        cells = [row.name]
        for name, audit in audits.items():
            cell = _three(audit.evaluation[row.name].pooled)
            interval = comparison.intervals.get(row.name, {}).get(name)
            cells.append(cell if interval is None else f"{cell} [{interval.low:.3f}, {interval.high:.3f}]")
        rows.append([*cells, _three(row.floor), row.fool])
    caption = (
        f"{first.n_series} series, {first.n_instants:,} instants, {first.n_events} events, delta_max {first.curve.delta_max}; pooled. In brackets: 95 % "
        "bootstrap intervals over events. Oracle: the threshold was chosen with the labels. Floor: what the best of four fools gets on the same labels."
    )
    columns = [("", "score"), *(("", name) for name in audits), ("", "floor"), ("", "best fool")]
    return Layout("Scores beside their floors", columns, rows, caption)


def audit_csv(audits: Mapping[str, Audit], comparison: Comparison) -> str:
    """A long table in full precision: one row for each score and set of scores."""
    rows = []
    for name, audit in audits.items():
        for r in audit.evaluation.rows:
            found = comparison.intervals.get(r.name, {}).get(name)
            ends = ("", "") if found is None else (found.low, found.high)
            rows.append((name, r.name, r.pooled, r.per_series_mean, r.floor, r.fool, r.corrected, *ends, r.warning))
    return csv_text(
        ("scores of", "score", "pooled", "per_series_mean", "floor", "best_fool", "corrected", "low", "high", "beware"),
        rows,
    )


def comparison_page(audits: Mapping[str, Audit], comparison: Comparison, *, command: str = "") -> str:
    """Several sets of scores side by side, as self-contained HTML."""
    layout = audit_layout(audits, comparison)
    first = next(iter(audits.values())).evaluation
    intervals = Table(
        ("score", "scores of", "value", "low", "high"),
        comparison.rows(),
        caption="95 % bootstrap intervals over events.",
    )
    beware = Table(("score", "beware"), [(row.name, row.warning) for row in first.rows if row.warning])
    dots = [
        Dots(
            row.name,
            [
                Dot(name, audit.evaluation[row.name].pooled, floor=audit.evaluation[row.name].floor, tone=f"c{i % 8}", low=_end(comparison, row.name, name, "low"), high=_end(comparison, row.name, name, "high"))
                for i, (name, audit) in enumerate(audits.items())
            ],
            caption="Dot: the value, with its interval. Grey bar: the best fool." if row is first.rows[0] else "",
        )
        for row in first.rows
        if math.isfinite(row.pooled)
    ]  # fmt: skip
    marked = Table(
        layout.headers,
        layout.rows,
        caption=layout.caption,
        terms=terms_of("SPD", "floor", "oracle", "pooled", "interval", "delta_max"),
    )
    sections = [
        Section("Side by side", [*dots, marked]),
        Section("How sure", [intervals]),
        Section("Before you quote one of them", [beware]),
        *(Section(f"{name} in words", list(audit.verdict)) for name, audit in audits.items()),
    ]
    answer, *more = comparison.verdict
    lead = f"{', '.join(audits)}: {first.n_series} series, {first.n_instants:,} rows, {first.n_events} events."
    return render_page("Scores side by side", sections, lead=lead, answer=answer, more=more, command=command)


def _end(comparison: Comparison, score: str, name: str, which: str) -> float:
    found = comparison.intervals.get(score, {}).get(name)
    return math.nan if found is None else float(getattr(found, which))
