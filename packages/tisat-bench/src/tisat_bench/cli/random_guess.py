"""``tisat data random-guess``: random guessing under point adjustment, on the labels of the benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tisat.cli.output import JsonFlag, print_json
from tisat.errors import DataFileError
from tisat.utils.types import JsonDict


def _row(name: str, labels: list[Any], p: float, n_simulations: int, printed: list[float] | None) -> JsonDict:
    from tisat.events import events_from_labels
    from tisat.metrics import best_random_guess, random_guess, random_guess_simulated

    total = sum(map(len, labels))
    simulated = random_guess_simulated(labels, p, n_simulations=n_simulations, random_state=0)
    best_p, best = best_random_guess(labels)

    def percent(found: object) -> list[float]:
        return [100 * getattr(found, part) for part in ("precision", "recall", "f1")]

    return {
        "labels": name,
        "n_series": len(labels),
        "n_rows": total,
        "n_events": sum(len(events_from_labels(y)) for y in labels),
        "anomalous_percent": 100 * sum(int(y.sum()) for y in labels) / total,
        "closed_form": percent(random_guess(labels, p)),
        "simulated": percent(simulated),
        "printed": printed,
        "best_p": best_p,
        "best_f1": 100 * best.f1,
    }


def random_guess_table(
    data: Annotated[
        Path | None, typer.Option(help="The folder that holds the data sets; TISAT_DATA if not given.")
    ] = None,
    p: Annotated[float, typer.Option(help="Probability of an alarm at a row.")] = 0.01,
    simulations: Annotated[
        int, typer.Option(help="How often the random baseline is thrown through each label set.")
    ] = 20,
    printed: Annotated[
        Path | None,
        typer.Option(help="Figures printed elsewhere to compare with, as JSON, such as experiments/paper.json."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Score random guessing under point adjustment on every label set, in percent."""
    from tisat_bench import datasets
    from tisat_bench.captions import GUESS
    from tisat_bench.frozen import TITLES
    from tisat_bench.published_figures import Printed, read_printed

    published = Printed(None if printed is None else read_printed(printed), "adjusted")

    rows, absent = [], []
    for name in datasets.NAMES:
        try:
            labels = list(datasets.labels(name, data).values())
        except DataFileError as error:
            absent.append(str(error))
            continue
        rows.append(_row(name, labels, p, simulations, published.value(GUESS, name)))
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
    kinds = {"closed_form": "closed form", "simulated": "simulated", "printed": published.name}
    typer.echo(layout.format("labels", "series", "T", "events", "anomalous %", *kinds.values()).rstrip())
    for row in rows:
        triples = [" / ".join(f"{value:.2f}" for value in row[kind] or ()) for kind in kinds]
        counts = (row["n_series"], f"{row['n_rows']:,}", row["n_events"], f"{row['anomalous_percent']:.2f}")
        typer.echo(layout.format(TITLES[row["labels"]], *counts, *triples).rstrip())
    typer.echo()
    for row in rows:
        note = ""
        if row["printed"]:
            gap = max(abs(a - b) for a, b in zip(row["closed_form"], row["printed"], strict=True))
            verdict = "agrees" if gap <= 0.05 else "is not what this p gives on the published labels"
            note = f"{published.name}, largest difference {gap:.2f}: {verdict}; "
        typer.echo(
            f"{row['labels']}: {note}the best random baseline (p = {row['best_p']:.3g}) has F1 {row['best_f1']:.2f}"
        )
    for sentence in absent:
        typer.echo(f"left out: {sentence}", err=True)
