"""The audit as tables, for a terminal, a paper or a spreadsheet: every score beside its baseline score, and the differences of sets of scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tisat.metrics.audit import Audit
from tisat.metrics.comparison import PAIRS, Comparison
from tisat.metrics.evaluation import fixed_metrics
from tisat.metrics.statistics import fewest_units
from tisat.utils.tables import DASH, Layout, csv_text

BRIEF = ("SPD", "event F1 (oracle)", "VUS-PR", "AUC-ROC", "AUC-PR")  # scores of more sets than fit side by side
PAIRED = "Paired over events; p adjusted for all pairs of a score (Holm), low and high of each pair alone."


def threshold_words(audits: Sequence[Audit]) -> str:
    """The thresholds of the rows that need one, as a sentence below a table: rows such as "event F1" do not name theirs."""
    if audits[0].threshold_source != "oracle":
        return f"Rows that need a threshold and do not say oracle are at {audits[0].threshold:.4g} ({audits[0].threshold_source})."
    values = ", ".join(f"{audit.threshold:.4g}" for audit in audits)
    where = "the oracle threshold" if len(audits) == 1 else "each set's own oracle threshold"
    return f"Rows that need a threshold and do not say oracle are at {where} ({values})."


def interval_words(n_events: int, sentence: str) -> str:
    """The sentence about the intervals of a table; of too few events, that there is none."""
    least = fewest_units()
    return sentence if n_events >= least else f"Fewer than {least} events have no interval."


def _three(value: float) -> str:
    return DASH if math.isnan(value) else f"{value:.3f}"


def _with_ends(audits: Mapping[str, Audit], comparison: Comparison, score: str, name: str) -> str:
    cell = _three(audits[name].evaluation[score].pooled)
    interval = comparison.intervals.get(score, {}).get(name)
    known = interval is not None and not math.isnan(interval.low)
    return f"{cell} [{interval.low:.3f}, {interval.high:.3f}]" if interval and known else cell


def audit_layout(audits: Mapping[str, Audit], comparison: Comparison) -> Layout:
    """A row for each score and a column for each set of scores; of more than three sets a row for each and the scores that are quoted most.

    The best is not marked: intervals say what differs.
    """
    first = next(iter(audits.values())).evaluation
    title = "Scores beside their baseline scores"
    brackets = f"In brackets: 95 % intervals over events, Student's t with the standard error of a bootstrap ({comparison.draws})."
    caption = (
        f"{first.n_series} series, {first.n_rows:,} rows, {first.n_events} events, delta_max {first.curve.delta_max}; pooled. "
        f"{interval_words(first.n_events, brackets)} Oracle: the threshold was chosen with the labels. Baseline score: what the best trivial baseline gets on the same labels. VUS: the 2025 form, as TSB-AD has it, the buffer being delta_max."
    )
    if len(audits) > PAIRS:
        rows = [
            [name, _with_ends(audits, comparison, BRIEF[0], name), *(_three(audit.evaluation[score].pooled) for score in BRIEF[1:])]
            for name, audit in audits.items()
        ]  # fmt: skip
        rows.append(["baseline score", *(_three(first[score].baseline_score) for score in BRIEF)])
        return Layout(title, [("", "scores"), *(("", score) for score in BRIEF)], rows, caption)
    rows = [
        [row.name, *(_with_ends(audits, comparison, row.name, name) for name in audits), _three(row.baseline_score), row.baseline]
        for row in first.rows
    ]  # fmt: skip
    columns = [("", "score"), *(("", name) for name in audits), ("", "baseline score"), ("", "best trivial baseline")]
    return Layout(title, columns, rows, f"{caption} {threshold_words(list(audits.values()))}")


def differences_layout(comparison: Comparison) -> Layout:
    """A row for each score and pair of sets of scores."""
    rows = []
    for d in comparison.differences:
        known = not math.isnan(d.interval.low)
        ends = f" [{d.interval.low:+.3f}, {d.interval.high:+.3f}]" if known else ""
        rows.append(
            [
                d.score,
                d.first,
                d.second,
                f"{d.interval.value:+.3f}{ends}",
                d.p_words.removeprefix("p ").removeprefix("= "),
            ]
        )
    columns = [("", name) for name in ("score", "first", "second", "first less second", "p")]
    return Layout("Differences", columns, rows, PAIRED, left=3)


def audit_csv(audits: Mapping[str, Audit], comparison: Comparison) -> str:
    """A long table in full precision: one row for each score and set of scores, then one for each difference of two sets (``kind``).

    The row of a difference has its value under ``pooled``: ``scores of`` less ``second``.
    """
    rows, at_threshold = [], set(fixed_metrics([], []))
    for name, audit in audits.items():
        level = "at the oracle threshold" if audit.threshold_source == "oracle" else "at threshold"
        for r in audit.evaluation.rows:
            found = comparison.intervals.get(r.name, {}).get(name)
            ends = ("", "") if found is None else (found.low, found.high)
            where = f"{level} {audit.threshold:.4g}" if r.name in at_threshold else ""
            beware = "; ".join(filter(None, (where, r.warning)))
            rows.append(
                (
                    name,
                    r.name,
                    r.pooled,
                    r.per_series_mean,
                    r.baseline_score,
                    r.baseline,
                    r.corrected,
                    *ends,
                    beware,
                    "score",
                    "",
                    "",
                )
            )
    for d in comparison.differences:
        ends = (d.interval.low, d.interval.high)
        rows.append((d.first, d.score, d.interval.value, "", "", "", "", *ends, "", "difference", d.second, d.p))
    return csv_text(
        (
            "scores of",
            "score",
            "pooled",
            "per_series_mean",
            "baseline score",
            "best_baseline",
            "corrected",
            "low",
            "high",
            "beware",
            "kind",
            "second",
            "p",
        ),
        rows,
    )
