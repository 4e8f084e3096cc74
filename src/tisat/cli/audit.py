"""``tisat audit``: what scores are worth, and what a coin gets on the labels of the benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tisat.cli._options import DeltaMax, instants_or_duration
from tisat.cli._output import JsonFlag, print_json, print_table
from tisat.errors import DataFileError

if TYPE_CHECKING:
    from tisat.benchmark.comparison import Comparison
    from tisat.cli._score_files import ScoredSeries
    from tisat.metrics import Audit

SHOWN = 10  # events and alarms listed on the terminal; --json and --html have them all


class _DefaultsToScores(TyperGroup):
    """``tisat audit LABELS SCORES`` is short for ``tisat audit scores LABELS SCORES``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands:
            args = ["scores", *args]  # also --help: its options are those of scores
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    cls=_DefaultsToScores,
    no_args_is_help=True,
    help="What scores are worth: `tisat audit LABELS SCORES`, with the fools beside every number.",
)


def _print(audit: Audit, comparison: Comparison) -> None:
    evaluation = audit.evaluation
    typer.echo("\n".join(f"* {sentence}" for sentence in audit.verdict) + "\n")
    print_table(
        f"{evaluation.n_series} series, {evaluation.n_instants:,} instants, {evaluation.n_events} events, delta_max {evaluation.curve.delta_max}",
        ("score", "pooled", "per-series mean", "floor", "corrected", "best fool"),
        [(row.name, row.pooled, row.per_series_mean, row.floor, row.corrected, row.fool) for row in evaluation.rows],
        note="oracle: the threshold was chosen with the labels",
    )
    typer.echo("\nBefore you quote one of them:")
    for row in evaluation.rows:
        if row.warning:
            typer.echo(f"  {row.name}: {row.warning}")
    typer.echo()
    print_table(
        f"How sure: 95 % bootstrap intervals over {comparison.n_events} event{'s' * (comparison.n_events != 1)}",
        ("score", "value", "low", "high"),
        [(score, value, low, high) for score, _, value, low, high in comparison.rows()],
        note=" ".join(comparison.verdict),
    )
    print_table(
        "SPD by delta_max",
        ("delta_max", "pooled", "per-series mean", "floor", "corrected", "best fool"),
        [(str(p.delta_max), p.pooled, p.per_series_mean, p.floor, p.corrected, p.fool) for p in audit.sweep],
    )
    print_table(
        "Floors: SPD of fools on these labels",
        ("fool", "pooled", "per-series mean"),
        [(name, float(score), score.per_series_mean) for name, score in evaluation.curve.floors.named.items()],
    )
    missed = [(event.series, event.start, event.stop, event.time) for event in audit.missed]
    false = [(alarm.series, alarm.instant, alarm.time) for alarm in audit.false_alarms]
    typer.echo(f"\nAt threshold {audit.threshold:.6g} ({audit.threshold_source}):")
    _print_list("events missed", ("series", "start", "stop", "time"), missed)
    _print_list("false alarms", ("series", "instant", "time"), false)


def _print_list(what: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        typer.echo(f"no {what}")
        return
    if not any(row[-1] for row in rows):  # no clock
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    more = f"{len(rows) - SHOWN} more with --json or --html" if len(rows) > SHOWN else ""
    print_table(f"{len(rows)} {what}", columns, rows[:SHOWN], note=more)


@app.command("scores", epilog="Also: tisat audit random-guess, what a coin gets on the labels of the benchmarks.")
def scores(
    labels: Annotated[
        Path,
        typer.Argument(help="Labels (0/1): csv, txt, parquet, npy or npz, or a folder with one file for each series."),
    ],
    scores: Annotated[
        list[Path],
        typer.Argument(
            help="Scores, higher = more anomalous: the same forms; files pair by name. Give several to compare them.",
            metavar="SCORES...",
        ),
    ],
    delta_max: DeltaMax = "100",
    threshold: Annotated[
        float | None, typer.Option(help="Where alarms are raised; chosen with the labels (oracle) if not given.")
    ] = None,
    label_column: Annotated[str | None, typer.Option(help="The column of labels.")] = None,
    score_column: Annotated[str | None, typer.Option(help="The column of scores.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures here.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write a LaTeX table (booktabs) here.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every figure in full precision here.")] = None,
    resamples: Annotated[int, typer.Option(help="Draws of the events for the intervals.", min=100, max=100_000)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the random fools and of the draws.")] = 0,
    json: JsonFlag = False,
) -> None:
    """What scores are worth on these labels: SPD, the old scores, the floors, and a verdict in words.

    Two or more sets of scores stand side by side, with intervals over events and a paired test: tisat audit labels.csv ours.csv theirs.csv
    """
    from tisat.benchmark.comparison import compare
    from tisat.cli._score_files import read_scored
    from tisat.metrics import audit

    found = {
        name: read_scored(labels, path, label_column=label_column, score_column=score_column)
        for name, path in _named(scores).items()
    }
    first = next(iter(found.values()))
    delay = instants_or_duration(delta_max)
    by_series = {name: dict(zip(one.names, one.scores, strict=True)) for name, one in found.items()}
    if len(found) > 1 and len(first.names) > 1:  # one order of series for all
        by_series = {name: {key: each[key] for key in first.names} for name, each in by_series.items()}
    audits = {
        name: audit(
            first.labels,
            list(each.values()),
            delta_max=delay,
            threshold=threshold,
            timestamps=first.timestamps,
            names=first.names,
            random_state=seed,
        )
        for name, each in by_series.items()
    }
    several = {name: list(each.values()) for name, each in by_series.items()}
    comparison = compare(
        first.labels, several, delta_max=delay, timestamps=first.timestamps, resamples=resamples, random_state=seed
    )
    command = f"tisat audit {labels.name} {' '.join(path.name for path in scores)} --delta-max {delta_max}"
    _write(audits, comparison, first, several, html=html, latex=latex, csv=csv, command=command)
    if json:
        each = {name: one.to_dict() for name, one in audits.items()}
        extra = {"intervals": comparison.to_dict()["intervals"]}
        print_json(
            {**next(iter(each.values())), **extra} if len(each) == 1 else {"audits": each, **comparison.to_dict()}
        )
        return
    if len(audits) == 1:
        _print(next(iter(audits.values())), comparison)
    else:
        _print_side_by_side(audits, comparison)
    for path in (html, latex, csv):
        if path is not None:
            typer.echo(f"written to {path}", err=True)


def _named(paths: Sequence[Path]) -> dict[str, Path]:
    """What each set of scores is called: its file, with the folder where two are called alike."""
    stems = [path.name.partition(".")[0] or str(path) for path in paths]
    named: dict[str, Path] = {}
    for stem, path in zip(stems, paths, strict=True):
        name = stem if stems.count(stem) == 1 else str(path)
        if name in named:
            raise DataFileError(f"Each set of scores must be given once. Got {str(path)!r} again.")
        named[name] = path
    return named


def _write(
    audits: dict[str, Audit],
    comparison: Comparison,
    read: ScoredSeries,
    scores: dict[str, list[Any]],
    *,
    html: Path | None,
    latex: Path | None,
    csv: Path | None,
    command: str,
) -> None:
    """The page and the tables that were asked for."""
    from tisat.report.audit import audit_csv, audit_layout, audit_page, comparison_page

    if html is not None:
        if len(audits) == 1:
            name, one = next(iter(audits.items()))
            page = audit_page(one, names=read.names, scores=scores[name], command=command)
        else:
            page = comparison_page(audits, comparison, command=command)
        html.write_text(page, encoding="utf-8")
    if latex is not None:
        latex.write_text(audit_layout(audits, comparison).latex(), encoding="utf-8")
    if csv is not None:
        csv.write_text(audit_csv(audits, comparison), encoding="utf-8")


def _print_side_by_side(audits: dict[str, Audit], comparison: Comparison) -> None:
    from tisat.report.audit import audit_layout

    layout = audit_layout(audits, comparison)
    typer.echo("\n".join(f"* {sentence}" for sentence in comparison.verdict) + "\n")
    print_table(layout.title, [*layout.headers], [*layout.rows], note=layout.caption)


def _row(
    name: str, labels: list[Any], p: float, n_simulations: int, seed: int, printed: list[float] | None
) -> dict[str, Any]:
    from tisat.events import events_from_labels
    from tisat.metrics import best_random_guess, random_guess, random_guess_simulated

    total = sum(map(len, labels))
    simulated = random_guess_simulated(labels, p, n_simulations=n_simulations, random_state=seed)
    best_p, best = best_random_guess(labels)

    def percent(found: Any) -> list[float]:
        return [100 * getattr(found, part) for part in ("precision", "recall", "f1")]

    return {
        "labels": name,
        "n_series": len(labels),
        "n_instants": total,
        "n_events": sum(len(events_from_labels(y)) for y in labels),
        "anomalous_percent": 100 * sum(int(y.sum()) for y in labels) / total,
        "closed_form": percent(random_guess(labels, p)),
        "simulated": percent(simulated),
        "printed": printed,
        "best_p": best_p,
        "best_f1": 100 * best.f1,
    }


@app.command("random-guess")
def random_guess_table(
    data: Annotated[
        Path | None, typer.Option(help="The folder that holds the data sets; TISAT_DATA if not given.")
    ] = None,
    p: Annotated[float, typer.Option(help="Probability of an alarm at an instant.")] = 0.01,
    simulations: Annotated[int, typer.Option(help="How often the coin is thrown through each label set.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the coin.")] = 0,
    printed: Annotated[
        Path | None,
        typer.Option(help="Figures printed elsewhere to compare with, as JSON, such as experiments/paper.json."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """What random guessing has under point adjustment, for every label set in DIR: adjusted P / R / F1 in percent."""
    from tisat import datasets
    from tisat.benchmark.captions import GUESS
    from tisat.benchmark.frozen import TITLES
    from tisat.benchmark.printed import Printed, read_printed

    others = Printed(None if printed is None else read_printed(printed), "adjusted")

    rows, absent = [], []
    for name in datasets.NAMES:
        try:
            labels = list(datasets.labels(name, data).values())
        except DataFileError as error:
            absent.append(str(error))
            continue
        rows.append(_row(name, labels, p, simulations, seed, others.value(GUESS, name)))
    if not rows:
        raise DataFileError(
            f"The folder {str(datasets.data_root(data))!r} must hold at least one of {', '.join(datasets.NAMES)}. Got none of them."
        )
    if json:
        print_json({"p": p, "simulations": simulations, "rows": rows, "absent": absent})
        return
    # plain lines, not a box: three triples of figures do not fit 80 columns, and wrapped triples cannot be read
    typer.echo(f"{GUESS}, p = {p:g}: adjusted precision / recall / F1 in percent\n")
    layout = "{:7}{:>7}{:>9}{:>8}{:>13}   {:23}{:23}{}"
    kinds = {"closed_form": "closed form", "simulated": "simulated", "printed": others.name}
    typer.echo(layout.format("labels", "series", "T", "events", "anomalous %", *kinds.values()).rstrip())
    for row in rows:
        triples = [" / ".join(f"{value:.2f}" for value in row[kind] or ()) for kind in kinds]
        counts = (row["n_series"], f"{row['n_instants']:,}", row["n_events"], f"{row['anomalous_percent']:.2f}")
        typer.echo(layout.format(TITLES[row["labels"]], *counts, *triples).rstrip())
    typer.echo()
    for row in rows:
        said = ""
        if row["printed"]:
            gap = max(abs(a - b) for a, b in zip(row["closed_form"], row["printed"], strict=True))
            verdict = "agrees" if gap <= 0.05 else "is not what this p gives on the published labels"
            said = f"{others.name}, largest difference {gap:.2f}: {verdict}; "
        typer.echo(f"{row['labels']}: {said}the best coin (p = {row['best_p']:.3g}) has F1 {row['best_f1']:.2f}")
    for sentence in absent:
        typer.echo(f"left out: {sentence}", err=True)
