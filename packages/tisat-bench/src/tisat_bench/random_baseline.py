"""Tables of what chance alone gets: random baselines under point adjustment, beside systems and alone, and trivial baselines under SPD.

As in :mod:`tisat_bench.tables`, everything comes from figures that were already made.
"""

from __future__ import annotations

import math

from tisat.utils.tables import DASH, Layout, percent
from tisat_bench.captions import FEWER, GUESS, data_sentence
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
    random_baselines = {random_baseline.dataset: random_baseline for random_baseline in frozen.random_baselines}
    guess, best = [f"{GUESS}, p = 0.01, closed form"], ["best random baseline, closed form"]
    for dataset in (*grid.datasets, *grid.absent):
        random_baseline = random_baselines.get(dataset)
        short = dataset in grid.absent
        if not short:
            guess += (
                [percent(random_baseline.precision), percent(random_baseline.recall), percent(random_baseline.f1)]
                if random_baseline
                else [DASH] * 3
            )
            best += [DASH, DASH, percent(random_baseline.best_f1) if random_baseline else DASH]
        if printed.covers(dataset):
            ours = f" (ours {percent(random_baseline.f1)})" if short and random_baseline else ""
            guess.append(printed.cell(GUESS, dataset) + ours)
            best.append(f"(ours {percent(random_baseline.best_f1)})" if short and random_baseline else DASH)
    rows += [guess, best]
    beaten = sum(not a.beats_random_baseline for a in frozen.adjusted if a.system != GUESS)
    total = sum(a.system != GUESS for a in frozen.adjusted)
    seeds = sorted({a.seeds for a in frozen.adjusted if a.seeds})
    fewer = sorted(
        {(a.system, frozen.titles[a.dataset], a.entities, a.of) for a in frozen.adjusted if a.entities < a.of}
    )
    below = (
        "Point-adjusted precision, recall and F1 in percent, pooled, at the best of all thresholds, which an oracle chose with the test labels (as is usual for this score). "
        "Warning: random guessing wins under this score. The two last rows are random baselines on the labels of every entity that is published; the systems are on the entities below. "
        f"In {beaten} of {total} cells a random baseline that chooses its probability the same way does better than the system on the same entities. {data_sentence(frozen)}"
        + (f" Systems with randomness: mean of {' or '.join(map(str, seeds))} seeds." if seeds else "")
        + (
            f" {FEWER} on fewer entities: " + ", ".join(f"{s} on {n} of {of} of {d}" for s, d, n, of in fewer) + "."
            if fewer
            else ""
        )
        + (f" Column '{printed.header}': {frozen.about['printed']['adjusted']['caption']}." if printed else "")
    )
    return grid.layout("Point-adjusted precision, recall, F1", rows, below, feet=2)


def baselines_table(frozen: Frozen, *, pooled: bool = True) -> Layout:
    """SPD of every trivial baseline on the labels, by delta_max."""
    deltas = sorted({baseline_score.delta_max for baseline_score in frozen.baselines})
    columns = [("", "Labels"), ("", "baseline"), *(("delta_max", str(delta)) for delta in deltas)]
    rows: list[list[str]] = []
    lines: list[int] = []
    sets = list(dict.fromkeys(baseline_score.dataset for baseline_score in frozen.baselines))
    for dataset in sets:
        lines.append(len(rows))
        mine = [baseline_score for baseline_score in frozen.baselines if baseline_score.dataset == dataset]
        for baseline in dict.fromkeys(baseline_score.baseline for baseline_score in mine):
            by_delta = {
                baseline_score.delta_max: baseline_score
                for baseline_score in mine
                if baseline_score.baseline == baseline
            }
            values = [by_delta[delta].pooled if pooled else by_delta[delta].mean for delta in deltas]
            rows.append([frozen.titles[dataset], baseline, *map(percent, values)])
    facts = []
    for dataset in sets:
        one = next(baseline_score for baseline_score in frozen.baselines if baseline_score.dataset == dataset)
        facts.append(
            f"{frozen.titles[dataset]}: {one.entities} entities, {one.events} events, {one.time_steps:,} rows, {one.anomalous:.2f} % anomalous"
        )
    below = f"SPD in percent of detectors that look at nothing, {'pooled' if pooled else 'per-entity mean'}, on the published test labels ({'; '.join(facts)})."
    return Layout(
        f"Baseline scores, {'pooled' if pooled else 'per-entity mean'}",
        columns,
        rows,
        below,
        left=2,
        rules=tuple(lines[1:]),
    )


def random_baselines_table(frozen: Frozen) -> Layout:
    """Random Guess under point adjustment: closed form on the labels beside the row printed elsewhere."""
    printed = Printed(frozen.about.get("printed"), "adjusted")
    rows = []
    for random_baseline in frozen.random_baselines:
        row = [
            frozen.titles[random_baseline.dataset],
            str(random_baseline.entities),
            *map(percent, (random_baseline.precision, random_baseline.recall, random_baseline.f1)),
        ]
        theirs = printed.value(GUESS, random_baseline.dataset) or [math.nan] * 3
        row += [percent(v / 100) for v in theirs] if printed else []
        rows.append([*row, f"{random_baseline.best_p:.4f}", percent(random_baseline.best_f1)])
    scores = ("P", "R", "F1")
    columns = [("", "Labels"), ("", "entities"), *(("p = 0.01", score) for score in scores)]
    columns += [(printed.name, score) for score in scores] if printed else []
    columns += [("best random baseline", "p"), ("best random baseline", "F1")]
    return Layout(
        f"{GUESS} under point adjustment",
        columns,
        rows,
        "In percent, by closed form on the published test labels.",
    )
