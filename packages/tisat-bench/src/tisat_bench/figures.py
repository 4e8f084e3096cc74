"""Figures: flat rows of plain values, one a cell of a table, made from an evaluation and small enough to be frozen.

Every SPD comes with its bootstrap interval over entities, its baseline score under the same post-processing and its chance-corrected
value. Seeds are averaged after the score is taken. How rows are laid out is the business of :mod:`tisat_bench.tables`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tisat.metrics import Baselines, baselines, best_adjusted_f1, best_random_guess, chance_corrected, random_guess
from tisat.metrics.statistics import Interval, interval_of, resampled_means, resampling_weights
from tisat.utils.types import Array, Flags
from tisat_bench.evaluation import Results, Run, normal_unit
from tisat_bench.task import SCORES

Seeds = tuple[list[float], Array, list[float], Array]  # pooled SPD of each seed, resampled; the same of the mean


@dataclass(frozen=True)
class Figure:
    """SPD of one system on one data set under one rule."""

    dataset: str
    system: str
    rule: str
    delta_max: int
    entities: int  # on how many it was run
    of: int  # how many there are
    seeds: int  # averaged; 0 where the system has no randomness
    pooled: float
    pooled_low: float  # 95 % bootstrap over entities
    pooled_high: float
    pooled_spread: float  # standard deviation over seeds
    mean: float  # per-entity mean
    mean_low: float
    mean_high: float
    mean_spread: float
    baseline_score: float  # the best trivial baseline's pooled SPD under the same rule
    baseline_mean: float
    corrected: float  # (pooled - baseline score) / (1 - baseline score)
    corrected_mean: float
    seconds: float  # fit and score, all entities, one thread, mean over seeds; NaN of scores computed elsewhere
    megabytes: float  # most memory of any task's process; NaN likewise
    steps: int  # gradient steps of one model, median over entities; 0 where there is no network
    failed: int  # tasks
    epochs: int = 0  # of one model, of all stages, median over entities; 0 where not recorded


@dataclass(frozen=True)
class Difference:
    """SPD of a system less that of the reference, on the entities both have, with a paired bootstrap interval."""

    dataset: str
    system: str
    reference: str
    rule: str
    delta_max: int
    entities: int
    pooled: float
    pooled_low: float
    pooled_high: float
    mean: float
    mean_low: float
    mean_high: float


@dataclass(frozen=True)
class EntityFigure:
    """SPD of one system on one entity, mean over seeds."""

    dataset: str
    entity: str
    system: str
    rule: str
    delta_max: int
    events: int
    spd: float


@dataclass(frozen=True)
class Adjusted:
    """Point-adjusted precision, recall and F1 of one system on one data set, at the best of all thresholds (an oracle's)."""

    dataset: str
    system: str
    entities: int
    of: int
    seeds: int
    precision: float
    recall: float
    oracle_f1: float
    spread: float  # standard deviation of F1 over seeds
    random_baseline_f1: float  # the best random baseline's, which may choose its probability with the labels too
    beats_random_baseline: bool


@dataclass(frozen=True)
class Baseline:
    """Score of a trivial baseline on the labels alone."""

    dataset: str
    entities: int
    events: int
    time_steps: int
    anomalous: float  # percent
    delta_max: int
    baseline: str
    pooled: float
    mean: float


@dataclass(frozen=True)
class RandomBaseline:
    """Random Guess under point adjustment, by closed form, on the labels alone."""

    dataset: str
    entities: int
    p: float
    precision: float
    recall: float
    f1: float
    best_p: float
    best_f1: float


def _weights(evaluation: Results, dataset: str, entities: Sequence[str]) -> Array:
    """Resamples of the data set's entities, the same for every system.

    Those a system lacks are left out.
    """
    everyone = evaluation.entities[dataset]
    columns = [everyone.index(entity) for entity in entities]
    return resampling_weights(len(everyone))[:, columns]


def _spread(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _interval_fields(name: str, found: Interval, each: Sequence[float]) -> dict[str, float]:
    """The fields of a figure about one score: its value, its interval over entities, its spread over seeds."""
    ends = {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return {**ends, f"{name}_spread": _spread(each)}


def _spd_by_seed(evaluation: Results, runs: Sequence[Run], entities: Sequence[str], rule: str, delta_max: int) -> Seeds:
    """Pooled and mean SPD of each seed, and of each resample averaged over seeds.

    Kept, for figures and differences share them.
    """
    key = (tuple(run.done[entity] for run in runs for entity in entities), rule, delta_max)
    if key not in evaluation.resampled:
        weights = _weights(evaluation, runs[0].dataset, entities)
        counts = [evaluation.counts(run, entities, rule, delta_max) for run in runs]
        per_seed = [one.per_entity() for one in counts]
        evaluation.resampled[key] = (
            [float(one.pooled()[0]) for one in counts],
            np.mean([one.pooled(weights) for one in counts], axis=0),
            [float(np.nanmean(one)) if not np.isnan(one).all() else math.nan for one in per_seed],
            np.mean([resampled_means(one, weights) for one in per_seed], axis=0),
        )
    kept: Seeds = evaluation.resampled[key]
    return kept


def baseline_of(
    evaluation: Results, dataset: str, entities: Sequence[str], rule: str, delta_max: int
) -> tuple[float, float]:
    """The best trivial baseline, pooled and mean: those of the labels alone, and random baselines that get the rule's post-processing."""
    plain = evaluation.baselines(dataset, entities, delta_max)
    random_baselines = evaluation.baseline(dataset, entities, rule, delta_max)
    pooled = float(np.mean([one.pooled()[0] for one in random_baselines]))
    mean = float(np.mean([np.nanmean(one.per_entity()) for one in random_baselines]))
    return max(plain.best, pooled), max(plain.best_per_series_mean, mean)


def figures(evaluation: Results, *, rules: Iterable[str], deltas: Iterable[int]) -> list[Figure]:
    """A figure for every system and data set that has results."""
    rows = []
    cells = [(rule, delta) for delta in deltas for rule in rules]
    for dataset, everyone in evaluation.entities.items():
        baselines: dict[tuple[Any, ...], tuple[float, float]] = {}
        for system in evaluation.experiment.systems:
            runs, entities = evaluation.finished(system.name, dataset)
            if not runs:
                continue
            tasks = [[evaluation.rows[run.done[entity]] for entity in entities] for run in runs]
            unknown = math.nan if system.detector == SCORES else 0.0  # what making the scores has cost
            for rule, delta in cells:
                key = (entities, rule, delta)
                if key not in baselines:
                    baselines[key] = baseline_of(evaluation, dataset, entities, rule, delta)
                baseline_score, baseline_mean = baselines[key]
                pooled, pooled_draws, means, mean_draws = _spd_by_seed(evaluation, runs, entities, rule, delta)
                whole = interval_of(float(np.mean(pooled)), pooled_draws)
                mean = interval_of(float(np.mean(means)), mean_draws)
                rows.append(
                    Figure(
                        dataset=dataset,
                        system=system.name,
                        rule=rule,
                        delta_max=delta,
                        entities=len(entities),
                        of=len(everyone),
                        seeds=0 if runs[0].seed is None else len(runs),
                        **_interval_fields("pooled", whole, pooled),
                        **_interval_fields("mean", mean, means),
                        baseline_score=baseline_score,
                        baseline_mean=baseline_mean,
                        corrected=chance_corrected(whole.value, baseline_score),
                        corrected_mean=chance_corrected(mean.value, baseline_mean),
                        seconds=unknown
                        + float(
                            np.mean([sum(row["fit_seconds"] + row["score_seconds"] for row in one) for one in tasks])
                        ),
                        megabytes=unknown + max(row["peak_bytes"] for one in tasks for row in one) / 1e6,
                        steps=int(np.median([row.get("steps") or 0 for one in tasks for row in one])),
                        failed=sum(len(run.failed) for run in evaluation.runs[system.name, dataset]),
                        epochs=int(np.median([row.get("epochs") or 0 for one in tasks for row in one])),
                    )
                )
    return rows


def _difference(one: Seeds, other: Seeds) -> tuple[float, float, float, float, float, float]:
    """Pooled and mean difference, each with its interval, from the same resamples of both."""
    pooled = interval_of(float(np.mean(one[0]) - np.mean(other[0])), one[1] - other[1])
    mean = interval_of(float(np.mean(one[2]) - np.mean(other[2])), one[3] - other[3])
    return pooled.value, pooled.low, pooled.high, mean.value, mean.low, mean.high


def differences(evaluation: Results, *, reference: str, rules: Iterable[str], delta_max: int) -> list[Difference]:
    """Every system against the reference, paired by entity and resample."""
    rows = []
    for rule in rules:
        for dataset in evaluation.entities:
            ours, our_entities = evaluation.finished(reference, dataset)
            for system in evaluation.experiment.systems:
                theirs, their_entities = evaluation.finished(system.name, dataset)
                common = tuple(entity for entity in our_entities if entity in their_entities)
                if system.name == reference or not common:
                    continue
                one, other = (_spd_by_seed(evaluation, runs, common, rule, delta_max) for runs in (theirs, ours))
                who = (dataset, system.name, reference, rule, delta_max, len(common))
                rows.append(Difference(*who, *_difference(one, other)))
    return rows


def rule_differences(evaluation: Results, *, against: str, rules: Iterable[str], delta_max: int) -> list[Difference]:
    """The same system under another rule less under ``against``: what the rule is worth, whatever the model."""
    rows = []
    for rule in rules:
        if rule == against:
            continue
        for dataset in evaluation.entities:
            for system in evaluation.experiment.systems:
                runs, entities = evaluation.finished(system.name, dataset)
                if not runs:
                    continue
                one, other = (_spd_by_seed(evaluation, runs, entities, name, delta_max) for name in (rule, against))
                who = (dataset, system.name, against, rule, delta_max, len(entities))
                rows.append(Difference(*who, *_difference(one, other)))
    return rows


def entity_figures(evaluation: Results, *, rules: Iterable[str], delta_max: int) -> list[EntityFigure]:
    """SPD of every system on every entity."""
    rows = []
    for dataset in evaluation.entities:
        for system in evaluation.experiment.systems:
            runs, entities = evaluation.finished(system.name, dataset)
            for rule in rules if runs else ():
                counts = [evaluation.counts(run, entities, rule, delta_max) for run in runs]
                each = np.mean([one.per_entity() for one in counts], axis=0)
                rows += [
                    EntityFigure(dataset, entity, system.name, rule, delta_max, int(events), float(value))
                    for entity, events, value in zip(entities, counts[0].n_events, each, strict=True)
                ]
    return rows


def adjusted_figures(evaluation: Results) -> list[Adjusted]:
    """Point-adjusted precision, recall and F1 of every system, pooled, at the threshold an oracle chooses."""
    rows = []
    for dataset, everyone in evaluation.entities.items():
        random_baselines: dict[tuple[str, ...], float] = {}
        for system in evaluation.experiment.systems:
            runs, entities = evaluation.finished(system.name, dataset)
            if not runs:
                continue
            labels = [evaluation.labels(dataset, entity) for entity in entities]
            if entities not in random_baselines:
                random_baselines[entities] = best_random_guess(labels)[1].f1
            best = []
            for run in runs:
                arrays = [evaluation.store.arrays(run.done[entity]) for entity in entities]
                best.append(best_adjusted_f1(labels, [one["scores"] / normal_unit(one["normal"]) for one in arrays]))
            f1 = float(np.mean([one.f1 for one in best]))
            rows.append(
                Adjusted(
                    dataset=dataset,
                    system=system.name,
                    entities=len(entities),
                    of=len(everyone),
                    seeds=0 if runs[0].seed is None else len(runs),
                    precision=float(np.mean([one.precision for one in best])),
                    recall=float(np.mean([one.recall for one in best])),
                    oracle_f1=f1,
                    spread=_spread([one.f1 for one in best]),
                    random_baseline_f1=random_baselines[entities],
                    beats_random_baseline=f1 > random_baselines[entities],
                )
            )
    return rows


def baseline_figures(
    labels: dict[str, list[Flags]],
    *,
    deltas: Iterable[int],
    baselines: Callable[[Sequence[Flags], int], Baselines] = baselines,
) -> list[Baseline]:
    """The trivial baselines on the labels of each data set.

    ``baselines`` may be one that keeps what it has computed.
    """
    from tisat.events import events_from_labels

    rows = []
    for dataset, many in labels.items():
        time_steps = sum(map(len, many))
        if not time_steps:
            continue
        events = sum(len(events_from_labels(one)) for one in many)
        share = 100.0 * sum(int(one.sum()) for one in many) / time_steps
        for delta in deltas:
            for baseline, score in baselines(many, delta).named.items():
                rows.append(
                    Baseline(
                        dataset,
                        len(many),
                        events,
                        time_steps,
                        share,
                        delta,
                        baseline,
                        float(score),
                        score.per_series_mean,
                    )
                )
    return rows


def random_baseline_figures(labels: dict[str, list[Flags]], *, p: float = 0.01) -> list[RandomBaseline]:
    """Random Guess under point adjustment on the labels of each data set."""
    rows = []
    for dataset, many in labels.items():
        guess = random_guess(many, p)
        best_p, best = best_random_guess(many)
        rows.append(RandomBaseline(dataset, len(many), p, guess.precision, guess.recall, guess.f1, best_p, best.f1))
    return rows
