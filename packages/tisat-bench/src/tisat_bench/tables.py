"""The tables of an experiment: our figures, those printed elsewhere, the baseline scores and the chance-corrected values.

Everything comes from figures that were already made, frozen or fresh; nothing is computed here but means of what is shown.
What chance alone gets has its tables in :mod:`tisat_bench.random_baseline`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tisat.alarms.rules import RULES
from tisat.errors import InputError
from tisat.metrics.statistics import Ranks, fewest_units, mean_ranks
from tisat.utils.tables import DASH, Layout, best_cells, percent, signed
from tisat_bench.captions import FEWER, caption, data_sentence, rule_title, rule_with_options
from tisat_bench.evaluation import BASELINE_DRAWS
from tisat_bench.figures import Difference, Figure
from tisat_bench.frozen import Frozen
from tisat_bench.grid import Grid, fewer, percents
from tisat_bench.published_figures import Printed
from tisat_bench.random_baseline import adjusted_table, baselines_table, random_baselines_table

BASELINE = "best trivial baseline, same rule"
RANK_DIGITS = 4  # SPDs closer than a hundredth of a percentage point are ties, stored or frozen


def spd_table(frozen: Frozen, *, rule: str) -> Layout:
    """SPD under one alarm rule, pooled and per-entity mean, beside the figures printed elsewhere."""
    delta = frozen.about["delta_max"]
    chosen_figures = [f for f in frozen.figures if f.rule == rule and f.delta_max == delta]
    cells = {(f.system, f.dataset): f for f in chosen_figures}
    printed = Printed(frozen.about.get("printed"), "spd")
    grid = Grid(frozen, (f.system for f in chosen_figures), ("pooled", "mean"), printed=printed)
    rows = grid.rows(lambda system, dataset: percents(cells.get((system, dataset)), "pooled", "mean"))
    rows.append(
        grid.row(
            BASELINE, lambda _, dataset: percents(_whole(chosen_figures, dataset), "baseline_score", "baseline_mean")
        )
    )
    below = caption(
        frozen,
        chosen_figures,
        f"SPD in percent, alarm rule: {rule_with_options(frozen, rule)}; delta_max = {delta} rows; exact over all thresholds"
        + (" of a grid." if rule in RULES and RULES[rule].feeds_back else ".")
        + " Pooled: one threshold for all entities; mean: over entities."
        + (
            f" Column '{printed.name}': {frozen.about['printed']['spd']['caption']}."
            if any(map(printed.covers, grid.datasets))
            else ""
        ),
    )
    figures = [j for j, (_, header) in enumerate(grid.columns) if header in ("pooled", "mean")]
    bold, best = " Bold: the highest of its column.", best_cells(rows[:-1], figures)
    return grid.layout(f"SPD under: {rule_title(rule)}", rows, below + bold, feet=1, strong=best)


def _whole(shown: Sequence[Figure], dataset: str, delta: int | None = None) -> Figure | None:
    """A figure on every entity of a data set: its baseline score is that of the column."""
    found = (f for f in shown if f.dataset == dataset and f.entities == f.of and delta in (None, f.delta_max))
    return next(found, None)


def corrected_table(frozen: Frozen) -> Layout:
    """Chance-corrected SPD, all rules side by side."""
    delta = frozen.about["delta_max"]
    figures = [f for f in frozen.figures if f.delta_max == delta]
    cells = {(f.system, f.dataset, f.rule): f for f in figures}
    rules = list(frozen.about["rules"])
    grid = Grid(frozen, (f.system for f in figures), rules)

    def cell(system: str, dataset: str, rule: str) -> str:
        f = cells.get((system, dataset, rule))
        return f"{percent(f.corrected)} / {percent(f.corrected_mean)}{fewer(f)}" if f else DASH

    rows = grid.rows(lambda system, dataset: [cell(system, dataset, rule) for rule in rules])
    # "random, simulated" is a check of the closed form, not another baseline; figures of earlier versions have no clock among them
    trivial = [name for name in dict.fromkeys(one.baseline for one in frozen.baselines) if name != "random, simulated"]
    below = caption(
        frozen,
        figures,
        f"Chance-corrected SPD in percent, pooled / per-entity mean: (SPD - baseline score) / (1 - baseline score), delta_max = {delta}. "
        f"Baseline score: the best of {'; '.join(trivial) or 'the trivial baselines'}; and the mean of {BASELINE_DRAWS} random draws under the same rule, which one seed can exceed. "
        "Below 0, a trivial baseline does better.",
    )
    return grid.layout("Chance-corrected SPD under each alarm rule", rows, below)


def _with_interval(value: float, low: float, high: float, *, entities: int) -> str:
    if entities < fewest_units():
        return signed(value)
    claim = FEWER if low > 0 or high < 0 else ""
    return f"{signed(value)} [{signed(low)}, {signed(high)}]{claim}"


def differences_table(frozen: Frozen, *, rule: str) -> Layout:
    """Every system less the reference, with paired bootstrap intervals."""
    shown = [d for d in frozen.differences if d.rule == rule]
    return _differences(
        frozen,
        shown,
        f"Difference to {frozen.about['reference']} under: {rule_title(rule)}",
        f"SPD less that of {frozen.about['reference']}, in percentage points, delta_max = {frozen.about['delta_max']}, with 95 % paired bootstrap intervals over entities "
        f"(1000 resamples); {FEWER} the interval excludes 0. Differences without {FEWER} are not claimed.",
    )


def rule_differences_table(frozen: Frozen, *, rule: str) -> Layout:
    """Every system under a rule less under the plain threshold."""
    shown = [d for d in frozen.rule_differences if d.rule == rule]
    return _differences(
        frozen,
        shown,
        f"What the rule is worth: {rule_title(rule)} less plain threshold",
        f"SPD of the same scores under the rule less under the plain threshold, in percentage points, delta_max = {frozen.about['delta_max']}, 95 % paired bootstrap intervals "
        f"over entities; {FEWER} the interval excludes 0.",
    )


def _differences(frozen: Frozen, shown: Sequence[Difference], title: str, below: str) -> Layout:
    cells = {(d.system, d.dataset): d for d in shown}
    grid = Grid(frozen, (d.system for d in shown), ("pooled", "mean"))

    def cells_of(system: str, dataset: str) -> list[str]:
        d = cells.get((system, dataset))
        if d is None:
            return [DASH, DASH]
        n = d.entities
        return [
            _with_interval(d.pooled, d.pooled_low, d.pooled_high, entities=n),
            _with_interval(d.mean, d.mean_low, d.mean_high, entities=n),
        ]

    least = fewest_units()
    few = f" Of fewer than {least} entities no difference is claimed and no interval is given."
    below += few if any(d.entities < least for d in shown) else ""
    return grid.layout(title, grid.rows(cells_of), f"{below} {data_sentence(frozen)}")


def sweep_table(frozen: Frozen, *, rule: str, pooled: bool = True) -> Layout:
    """SPD against delta_max."""
    figures = [f for f in frozen.figures if f.rule == rule]
    deltas = sorted({f.delta_max for f in figures})
    cells = {(f.system, f.dataset, f.delta_max): f for f in figures}
    score, baseline_score = ("pooled", "baseline_score") if pooled else ("mean", "baseline_mean")
    grid = Grid(frozen, (f.system for f in figures), list(map(str, deltas)))

    def cells_of(system: str, dataset: str) -> list[str]:
        return [cell for delta in deltas for cell in percents(cells.get((system, dataset, delta)), score)]

    def of_baseline(_: str, dataset: str) -> list[str]:
        return [cell for delta in deltas for cell in percents(_whole(figures, dataset, delta), baseline_score)]

    rows = [*grid.rows(cells_of), grid.row(BASELINE, of_baseline)]
    below = caption(
        frozen,
        figures,
        f"SPD in percent, {'pooled' if pooled else 'per-entity mean'}, by delta_max (columns); alarm rule: {rule_with_options(frozen, rule)}.",
    )
    title = f"SPD against delta_max, {rule_title(rule)}, {'pooled' if pooled else 'mean'}"
    return grid.layout(title, rows, below, feet=1)


def ranks_of(frozen: Frozen, *, rule: str) -> Ranks | None:
    """Mean ranks over all entities that every compared system has.

    None where there are too few.
    """
    shown = [e for e in frozen.entities if e.rule == rule]
    blocks = list(dict.fromkeys((e.dataset, e.entity) for e in shown))
    systems = list(dict.fromkeys(e.system for e in shown))
    values = {(e.system, e.dataset, e.entity): e.spd for e in shown}
    complete = [s for s in systems if sum((s, *block) in values for block in blocks) == len(blocks)]
    if len(complete) < 2:
        return None
    table = np.array([[values[system, *block] for system in complete] for block in blocks])
    try:
        return mean_ranks(np.round(table, RANK_DIGITS), complete)
    except InputError:
        return None


def ranks_table(frozen: Frozen, *, rule: str) -> Layout | None:
    """Mean ranks with the critical difference."""
    ranks = ranks_of(frozen, rule=rule)
    if ranks is None:
        return None
    rows = [[name, f"{rank:.2f}"] for name, rank in zip(ranks.names, ranks.ranks, strict=True)]
    together = "; ".join(" = ".join(group) for group in ranks.groups()) or "none"
    friedman = "" if math.isnan(ranks.friedman_p) else f"Friedman p = {ranks.friedman_p:.1e}. "  # takes three systems
    below = (
        f"Mean rank of per-entity SPD over {ranks.blocks} entities with events (1 is best), rule: {rule_with_options(frozen, rule)}. {friedman}"
        f"Ranks closer than {ranks.critical_difference:.2f} (Nemenyi, 5 %) are not told apart: {together}. Only systems that have every entity. {data_sentence(frozen)}"
    )
    return Layout(f"Mean ranks under: {rule_title(rule)}", [("", "System"), ("", "mean rank")], rows, below)


def cost_table(frozen: Frozen) -> Layout:
    """How each system was run and what it costs: settings, gradient steps, seconds and memory."""
    figures = [
        f for f in frozen.figures if f.rule == frozen.about["rules"][0] and f.delta_max == frozen.about["delta_max"]
    ]
    cells = {(f.system, f.dataset): f for f in figures}
    systems = {system["name"]: system for system in frozen.about["systems"]}
    grid = Grid(frozen, (f.system for f in figures), ("steps", "seconds", "MB"), names=("System", "set to"))

    def cells_of(system: str, dataset: str) -> list[str]:
        f = cells.get((system, dataset))
        if f is None:
            return [DASH] * 3
        epochs = f" ({f.epochs})" if f.epochs else ""
        cost = [DASH] * 2 if math.isnan(f.seconds) else [f"{f.seconds:.0f}{fewer(f)}", f"{f.megabytes:.0f}"]
        return [f"{f.steps:,}{epochs}" if f.steps else DASH, *cost]

    def set_to(system: str) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in systems[system]["params"].items())
        return ("pooled; " if systems[system].get("pooled") else "") + (settings or "defaults")

    rows = [grid.row(system, cells_of, set_to(system)) for system in grid.systems]
    below = caption(
        frozen,
        figures,
        "Gradient steps of one model (median over entities; in brackets its epochs, where they were recorded), seconds to fit and score all entities of a data set with one thread, and the most memory a process held.",
        frozen.about.get("said", {}).get("cost", ""),
    )
    return grid.layout("How each was run, and what it cost", rows, below, left=2)


def tables_of(frozen: Frozen) -> list[Layout]:
    """Every table of an experiment, in the order it is read."""
    kind, rules = frozen.about["kind"], frozen.about["rules"]
    if kind == "adjusted":
        return [adjusted_table(frozen)]
    if kind == "baselines":
        return [baselines_table(frozen), baselines_table(frozen, pooled=False), random_baselines_table(frozen)]
    if kind == "sweep":
        return [sweep_table(frozen, rule=rule, pooled=pooled) for rule in rules for pooled in (True, False)]
    if kind == "rules":
        return [*(rule_differences_table(frozen, rule=rule) for rule in rules if rule != "threshold")]
    tables: list[Layout | None] = [spd_table(frozen, rule=rule) for rule in rules]
    tables.append(corrected_table(frozen))
    compared = {d.rule for d in frozen.differences}
    tables += [differences_table(frozen, rule=rule) for rule in rules if rule in compared]
    tables += [ranks_table(frozen, rule=rule) for rule in rules]
    tables.append(cost_table(frozen))
    return [table for table in tables if table is not None]


def markdown_page(frozen: Frozen) -> str:
    """All tables of an experiment as one Markdown page, the same bytes for the same figures."""
    about = frozen.about
    lines = [
        f"# {about['title']}",
        "",
        f"Made by `make tables` from `experiments/frozen/{about['experiment']}/`, which was written by `{about['command']}` with tisat {', '.join(about['versions'])}.",
        "",
    ]
    if about["note"]:
        lines += [about["note"], ""]
    if about["not_run"]:
        why = f", {about['said']['not_run']}" if "not_run" in about.get("said", {}) else ""
        fill = f"tisat bench experiments/{about['experiment']}.toml --only NAME"
        lines += [
            f"Not run{why}; `{fill}` fills a gap and goes on where it stopped: " + "; ".join(about["not_run"]) + ".",
            "",
        ]
    if about["failures"]:
        lines += ["Failed:", "", *(f"* {failure}" for failure in about["failures"]), ""]
    return "\n".join([*lines, *(table.markdown() for table in tables_of(frozen))])
