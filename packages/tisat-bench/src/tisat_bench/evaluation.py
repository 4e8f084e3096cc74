"""Stored scores under each alarm rule, counted against the labels: every figure of every table starts here.

Scores are computed once and evaluated as often as one likes; counts are kept beside the store, under a hash of what they
depend on, so that a second look is quick. Before pooling a score is expressed in units of its entity's own normal level; the
evidence of the other two rules has such a unit already. No threshold is chosen here. Layouts are in :mod:`tisat_bench.tables`.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat.alarms.rules import AlarmRule, Scored, make_rule
from tisat.detectors.base import NORMAL_QUANTILE
from tisat.errors import InputError
from tisat.metrics import Baselines, Score, baselines
from tisat.metrics.entity_counts import EntityCounts, counts_of_scores
from tisat.metrics.windows import windows_of
from tisat.persistence.model_file import write_bytes
from tisat.utils.types import Array, Flags, JsonDict
from tisat_bench.experiment import Experiment, System
from tisat_bench.rule_counts import NEVER, counts_of_rule
from tisat_bench.store import Store, read_arrays
from tisat_bench.task import Task

COUNTS_VERSION = 2  # raised when counts are made differently, so that kept ones are not used
ROUNDING = 1e-9  # a normal level below this is a channel that never moved
BASELINE_DRAWS = 5  # random baselines averaged for the baseline score of a rule
BASELINE_NORMAL = 5000  # normal rows of the random baseline


@dataclass(frozen=True)
class Run:
    """One system on one data set with one seed: which of its entities are done."""

    system: System
    dataset: str
    seed: int | None
    done: dict[str, str]  # entity -> task hash
    failed: dict[str, str]  # entity -> reason
    missing: tuple[str, ...]  # entities that have no outcome yet


def normal_unit(normal: Array) -> float:
    """The level in whose units scores are pooled: q99 of the normal scores, but at least their mean.

    Where the mean lies above q99, rare jumps are all there is and q99 is the resting value: SMAP A-8 has q99 = 1e-8 and a
    maximum of 762 under the last-value forecast, and dividing by it would drown every other channel. Where a channel never
    moved in training both are 0 (or rounding), and the unit is 1: the score as it is. ``docs/log.md`` has what this changes.

    Examples
    --------
    >>> normal_unit(np.zeros(5)), normal_unit(np.full(5, 2.0)), normal_unit(np.append(np.zeros(999), 500.0))
    (1.0, 2.0, 0.5)
    """
    level = max(float(np.quantile(normal, NORMAL_QUANTILE)), float(np.mean(normal)))
    return level if level > ROUNDING else 1.0


def evidence_of(arrays: dict[str, Array], rule: AlarmRule) -> Array:
    """The evidence of stored scores under a rule.

    Where the rule's statistic has no unit of its own, in normal levels.
    """
    if rule.needs_points and rule.name in arrays:
        return arrays[rule.name]
    if rule.needs_points and "views" in arrays:
        raise InputError(
            f"The rule {rule.name!r} must have its evidence in the store, because it looks at points. Got {', '.join(sorted(arrays))} instead."
        )
    unit = 1.0 if rule.has_unit else normal_unit(arrays["normal"])
    momentary = tuple(np.asarray(arrays.get("momentary", ()), dtype=np.int64).tolist())
    normal, scored = (
        Scored.of(arrays[scores] / unit, views=arrays[views] / unit if views in arrays else None, momentary=momentary)
        for scores, views in (("normal", "normal_views"), ("scores", "views"))
    )
    return rule.fit(normal).evidence(scored)


def statistic_of(arrays: dict[str, Array], rule: AlarmRule) -> Array:
    """Statistic of stored scores under a rule whose alarms do not feed back."""
    return rule.accumulate(evidence_of(arrays, rule), threshold=NEVER).statistic


class Results:
    """An experiment's stored results, ready to be counted.

    Parameters
    ----------
    experiment : Experiment
    store : Store
    """

    def __init__(self, experiment: Experiment, store: Store) -> None:
        self.experiment = experiment
        self.store = store
        (store.folder / "counts").mkdir(exist_ok=True)
        self.resampled: dict[Any, Any] = {}  # bootstrap draws that several tables share

    @cached_property
    def rows(self) -> dict[str, JsonDict]:
        """The rows of the store, by task hash."""
        return self.store.rows()

    @cached_property
    def entities(self) -> dict[str, tuple[str, ...]]:
        """The entities of each data set, in order."""
        return self.experiment.names

    @cached_property
    def runs(self) -> dict[tuple[str, str], list[Run]]:
        """(system, data set) -> one run a seed."""
        runs: dict[tuple[str, str], list[Run]] = {}
        for system in self.experiment.systems:
            mine: dict[tuple[str, int | None], list[Task]] = {}
            for task in self.experiment.tasks_of(system):
                mine.setdefault((task.dataset, task.seed), []).append(task)
            for (dataset, seed), tasks in mine.items():
                status = {task.entity: self.rows.get(task.id, {}) for task in tasks}
                run = Run(
                    system,
                    dataset,
                    seed,
                    {task.entity: task.id for task in tasks if status[task.entity].get("status") == "done"},
                    {name: row["reason"] for name, row in status.items() if row.get("status") == "failed"},
                    tuple(name for name, row in status.items() if not row),
                )
                runs.setdefault((system.name, dataset), []).append(run)
        return runs

    def finished(self, system: str, dataset: str) -> tuple[list[Run], tuple[str, ...]]:
        """The runs to be averaged, and the entities all of them have: seeds that are as far as the farthest one."""
        runs = self.runs.get((system, dataset), [])
        most = max((len(run.done) for run in runs), default=0)
        complete = [run for run in runs if len(run.done) == most and most]
        if not complete:
            return [], ()
        common = tuple(name for name in self.entities[dataset] if all(name in run.done for run in complete))
        return (complete, common) if common else ([], ())

    def rule(self, name: str) -> AlarmRule:
        """The alarm rule with the experiment's options."""
        return make_rule(name, **self.experiment.rule_options.get(name, {}))

    def labels(self, dataset: str, entity: str) -> Flags:
        """The test labels of an entity."""
        labels = self.experiment.labels_of(dataset, entity)
        assert labels is not None, "a benchmark's test series carries labels"
        return labels

    def counts(self, run: Run, entities: Sequence[str], rule: str, delta_max: int) -> EntityCounts:
        """The counts of one run under one rule."""
        alarm_rule = self.rule(rule)
        identifiers = [run.done[entity] for entity in entities]

        def count() -> EntityCounts:
            windows = [windows_of(self.labels(run.dataset, entity), delta_max) for entity in entities]
            if alarm_rule.feeds_back:
                evidence = [evidence_of(self.store.arrays(identifier), alarm_rule) for identifier in identifiers]
                return counts_of_rule(evidence, windows, alarm_rule)
            return counts_of_scores([self.statistic(identifier, rule) for identifier in identifiers], windows)

        return EntityCounts.of_arrays(
            self._cached(["run", identifiers, rule, alarm_rule.params(), delta_max], lambda: count().to_arrays())
        )

    def statistic(self, identifier: str, rule: str) -> Array:
        """The statistic of a task's test series under a rule that does not restart."""
        made = self.rule(rule)
        key = ["statistic", identifier, rule, made.params()]
        return self._cached(key, lambda: {"statistic": statistic_of(self.store.arrays(identifier), made)})["statistic"]

    def normal_top(self, identifier: str, rule: str) -> float:
        """The highest value the statistic reached on the task's normal rows, under a rule that does not restart."""
        alarm_rule = self.rule(rule)

        def make() -> dict[str, Array]:
            arrays = self.store.arrays(identifier)
            normal = {"normal": arrays["normal"], "scores": arrays["normal"]}
            if "normal_views" in arrays:
                normal |= {"normal_views": arrays["normal_views"], "views": arrays["normal_views"]}
                normal |= {"momentary": arrays["momentary"]} if "momentary" in arrays else {}
            return {"top": np.array(np.nanmax(statistic_of(normal, alarm_rule)))}

        return float(self._cached(["normal top", identifier, rule, alarm_rule.params()], make)["top"])

    def baseline(self, dataset: str, entities: Sequence[str], rule: str, delta_max: int) -> list[EntityCounts]:
        """The counts of random baselines that get the same post-processing as everybody else."""
        counts = []
        for draw in range(BASELINE_DRAWS):
            made = self.rule(rule)

            def arrays(draw: int = draw, made: AlarmRule = made) -> dict[str, npt.NDArray[Any]]:
                windows = [windows_of(self.labels(dataset, entity), delta_max) for entity in entities]
                rng = np.random.default_rng([draw, 20221])
                random_baselines = [
                    {"normal": rng.random(BASELINE_NORMAL), "scores": rng.random(len(one))} for one in windows
                ]
                if made.feeds_back:
                    return counts_of_rule(
                        [evidence_of(random_baseline, made) for random_baseline in random_baselines], windows, made
                    ).to_arrays()
                return counts_of_scores(
                    [statistic_of(random_baseline, made) for random_baseline in random_baselines], windows
                ).to_arrays()

            key = ["baseline", dataset, list(entities), draw, rule, made.params(), delta_max]
            counts.append(EntityCounts.of_arrays(self._cached(key, arrays)))
        return counts

    def baselines(self, dataset: str, entities: Sequence[str], delta_max: int) -> Baselines:
        """Scores of trivial baselines on the same labels, for any rule."""
        return self.baselines_on([self.labels(dataset, entity) for entity in entities], delta_max)

    def baselines_on(self, labels: Sequence[Flags], delta_max: int) -> Baselines:
        """Scores of trivial baselines on these labels, cached."""
        digest = hashlib.sha256(b"".join(np.packbits(one).tobytes() for one in labels)).hexdigest()
        key = ["baselines with time only", digest, [len(one) for one in labels], delta_max]

        def make() -> dict[str, Array]:
            found = baselines(labels, delta_max)
            return {one.name: np.array([s := getattr(found, one.name), *s.per_series]) for one in fields(Baselines)}

        return Baselines(
            **{name: Score.of(float(one[0]), one[1:].tolist()) for name, one in self._cached(key, make).items()}
        )

    def _cached(self, key: object, make: Callable[[], dict[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
        """Arrays made once and kept under a hash of what they depend on."""
        text = json.dumps([COUNTS_VERSION, key], sort_keys=True)
        file = self.store.folder / "counts" / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.npz"
        kept = read_arrays(file.read_bytes()) if file.is_file() else None
        if kept is not None:  # a cache that cannot be read is made again
            return kept
        arrays = make()
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle
        write_bytes(file, buffer.getvalue())
        return arrays
