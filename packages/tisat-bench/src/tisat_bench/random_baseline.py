"""Tables of what chance alone gets: coins under point adjustment, beside systems and alone, and fools under SPD.

As in :mod:`tisat_bench.tables`, everything comes from figures that were already made.
"""

from __future__ import annotations

import math

from tisat.utils.tables import DASH, Layout, percent
from tisat_bench.captions import FEWER, GUESS, where_from
from tisat_bench.frozen import Frozen
from tisat_bench.grid import Grid, percents
from tisat_bench.published_figures import Printed


def adjusted_table(frozen: Frozen) -> Layout:
    """Point-adjusted precision, recall and F1, ours beside the F1 printed elsewhere."""
    cells = {(a.system, a.dataset): a for a in frozen.adjusted}
    printed = Printed(frozen.about.get("printed"), "adjusted")
    shown = (a.system for a in frozen.adjusted if a.system != GUESS)
    grid = Grid(frozen, shown, ("P", "R", "F1"), printed=printed)
    rows = grid.rows(lambda name, dataset: percents(cells.get((name, dataset)), "precision", "recall", "oracle_f1"))
    coins = {coin.dataset: coin for coin in frozen.coins}
    guess, best = [f"{GUESS}, p = 0.01, closed form"], ["best coin, closed form"]
    for dataset in (*grid.datasets, *grid.absent):
        coin = coins.get(dataset)
        short = dataset in grid.absent
        if not short:
            guess += [percent(coin.precision), percent(coin.recall), percent(coin.f1)] if coin else [DASH] * 3
            best += [DASH, DASH, percent(coin.best_f1) if coin else DASH]
        if printed.covers(dataset):
            ours = f" (ours {percent(coin.f1)})" if short and coin else ""
            guess.append(printed.cell(GUESS, dataset) + ours)
            best.append(f"(ours {percent(coin.best_f1)})" if short and coin else DASH)
    rows += [guess, best]
    beaten = sum(not a.beats_coin for a in frozen.adjusted if a.system != GUESS)
    total = sum(a.system != GUESS for a in frozen.adjusted)
    seeds = sorted({a.seeds for a in frozen.adjusted if a.seeds})
    fewer = sorted(
        {(a.system, frozen.titles[a.dataset], a.entities, a.of) for a in frozen.adjusted if a.entities < a.of}
    )
    below = (
        "Point-adjusted precision, recall and F1 in percent, pooled, at the best of all thresholds, which an oracle chose with the test labels (as is usual for this score). "
        "Warning: random guessing wins under this score. The two last rows are coins on the labels of every entity that is published; the systems are on the entities below. "
        f"In {beaten} of {total} cells a coin that chooses its probability the same way does better than the system on the same entities. {where_from(frozen)}"
        + (f" Systems with randomness: mean of {' or '.join(map(str, seeds))} seeds." if seeds else "")
        + (
            f" {FEWER} on fewer entities: " + ", ".join(f"{s} on {n} of {of} of {d}" for s, d, n, of in fewer) + "."
            if fewer
            else ""
        )
        + (f" Column '{printed.header}': {frozen.about['printed']['adjusted']['caption']}." if printed else "")
    )
    return grid.layout("Point-adjusted precision, recall, F1", rows, below, feet=2)


def floors_table(frozen: Frozen, *, pooled: bool = True) -> Layout:
    """SPD of every fool on the labels, by delta_max."""
    deltas = sorted({floor.delta_max for floor in frozen.floors})
    columns = [("", "Labels"), ("", "fool"), *(("delta_max", str(delta)) for delta in deltas)]
    rows: list[list[str]] = []
    lines: list[int] = []
    sets = list(dict.fromkeys(floor.dataset for floor in frozen.floors))
    for dataset in sets:
        lines.append(len(rows))
        mine = [floor for floor in frozen.floors if floor.dataset == dataset]
        for fool in dict.fromkeys(floor.fool for floor in mine):
            by_delta = {floor.delta_max: floor for floor in mine if floor.fool == fool}
            values = [by_delta[delta].pooled if pooled else by_delta[delta].mean for delta in deltas]
            rows.append([frozen.titles[dataset], fool, *map(percent, values)])
    facts = []
    for dataset in sets:
        one = next(floor for floor in frozen.floors if floor.dataset == dataset)
        facts.append(
            f"{frozen.titles[dataset]}: {one.entities} entities, {one.events} events, {one.instants:,} instants, {one.anomalous:.2f} % anomalous"
        )
    below = f"SPD in percent of detectors that look at nothing, {'pooled' if pooled else 'per-entity mean'}, on the published test labels ({'; '.join(facts)})."
    return Layout(
        f"Floors, {'pooled' if pooled else 'per-entity mean'}", columns, rows, below, left=2, rules=tuple(lines[1:])
    )


def coins_table(frozen: Frozen) -> Layout:
    """Random Guess under point adjustment: closed form on the labels beside the row printed elsewhere."""
    printed = Printed(frozen.about.get("printed"), "adjusted")
    rows = []
    for coin in frozen.coins:
        row = [frozen.titles[coin.dataset], str(coin.entities), *map(percent, (coin.precision, coin.recall, coin.f1))]
        theirs = printed.value(GUESS, coin.dataset) or [math.nan] * 3
        row += [percent(v / 100) for v in theirs] if printed else []
        rows.append([*row, f"{coin.best_p:.4f}", percent(coin.best_f1)])
    scores = ("P", "R", "F1")
    columns = [("", "Labels"), ("", "entities"), *(("p = 0.01", score) for score in scores)]
    columns += [(printed.name, score) for score in scores] if printed else []
    columns += [("best coin", "p"), ("best coin", "F1")]
    return Layout(
        f"{GUESS} under point adjustment",
        columns,
        rows,
        "In percent, by closed form on the published test labels.",
    )
