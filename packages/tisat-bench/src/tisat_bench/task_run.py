"""``run_task``: a task and its two series in, scores and a row out.

Pure, and the same on a laptop and a cluster.

It fits on the training series (without its labels), scores the test series, and computes the one thing that needs the
points themselves, the evidence of the paper's alarm rule. It knows no labels, no thresholds, no metrics and no files.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tisat.alarms.rules import make_rule
from tisat.batch.threads import one_thread
from tisat.detectors import adapt
from tisat.errors import ArtefactError, InputError
from tisat.series import Series
from tisat.utils.types import Array, JsonDict
from tisat_bench.external_scores import checksum, read_given
from tisat_bench.sources import Source
from tisat_bench.task import SCORES, Options, Task, build, fingerprint

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


@dataclass(frozen=True)
class Outcome:
    """The result of a task: a row for the log and, if it succeeded, arrays."""

    task: Task
    row: JsonDict  # plain values: status, reason, timings, memory, machine
    arrays: dict[str, Array] = field(default_factory=dict, repr=False)
    # scores (T,), raw; normal (N,), the scores of normal rows; paper (T,), evidence of the paper's rule

    @property
    def failed(self) -> bool:
        """Whether the row says why there are no scores."""
        return bool(self.row["status"] == "failed")


@cache
def machine() -> JsonDict:
    """Processor and library versions of this process; no host or user name."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = (line for line in info.read_text().splitlines() if line.startswith("model name"))
        model = next(lines, f": {model}").partition(":")[2].strip()
    installed = {name: _version(name) for name in LIBRARIES}
    return {
        "system": platform.system(),
        "processor": model or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version for name, version in installed.items() if version is not None},
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def reset_peak_memory() -> None:
    """Start measuring the peak from here, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # then the peak is the process's own since it started, which is an upper bound


def peak_memory() -> int:
    """The most memory the process has held since :func:`reset_peak_memory`, in bytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # not on every system
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _resumed(fit: Callable[..., Any], checkpoint: Path) -> tuple[Any, float]:
    """A network whose training continues from its checkpoint, if there is a whole one, and the seconds of all its training."""
    started = time.perf_counter()
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    try:
        fitted = fit(checkpoint=checkpoint, resume=True)
    except ArtefactError:  # damaged, or of data that have changed since: it is ours, and training starts over
        checkpoint.unlink()
        fitted = fit(checkpoint=checkpoint)
    return fitted, max(time.perf_counter() - started, fitted.training_seconds_)


@lru_cache(maxsize=1)
def _fitted_together(
    detector: str,
    params: Options,
    seed: int | None,
    source: Source,
    entities: tuple[str, ...],
    checkpoint: Path | None,
) -> tuple[Any, float]:
    """One model for all entities of a data set, and the seconds it took.

    The last one is kept for its next entity.
    """
    started = time.perf_counter()
    training = [series.without_labels() for series in source.training(entities)]
    fit = partial(build(detector, params, seed).fit_together, training)
    return (fit(), time.perf_counter() - started) if checkpoint is None else _resumed(fit, checkpoint)


def _compute(
    task: Task, train: Series, test: Series, source: Source | None, checkpoint: Path | None
) -> tuple[JsonDict, dict[str, Array]]:
    seen = fingerprint(train, test)
    if seen != task.fingerprint:
        raise InputError(
            f"The data of {task} must have fingerprint {task.fingerprint}. Got {seen} instead: the files have changed."
        )
    if task.detector == SCORES:
        return _external_scores(task, train, test)
    detector = task.build()  # imports what it needs, so that it can be told to use one thread
    with one_thread():
        trained = 0.0  # seconds; of a pooled model, this entity's share
        if task.pooled:
            if source is None or not hasattr(detector, "fit_together"):
                raise InputError(f"A pooled task must have a neural detector and its source. {task} has not.")
            shared, together = _fitted_together(task.detector, task.params, task.seed, source, task.pooled, checkpoint)
            trained = together / len(task.pooled)
            started = time.perf_counter()
            detector = adapt(shared, train.without_labels())
        else:
            started = time.perf_counter()
            # Every row is for the model, and normal points are its own; but a detector that learns from unseen rows is fitted as users fit it.
            fit = partial(detector.fit, train.without_labels(), holdout=None if detector.traits.learns_unseen else 0.0)
            if checkpoint is None or not hasattr(detector, "fit_together"):
                fit()
            else:
                _, trained = _resumed(fit, checkpoint)
                started = time.perf_counter()
        fitted = time.perf_counter()
        points = detector.points(test.without_labels())
        scores = detector.aggregate(points)
        scored = time.perf_counter()
        if not np.isfinite(scores).any() or np.isinf(scores).any():
            raise InputError(
                f"The scores of {task} must be finite numbers after the warm-up. Got infinite ones or none at all."
            )
        rule = make_rule("paper", **dict(task.evidence)).fit(detector.normal_)
        arrays = {
            "scores": scores,
            "normal": detector.aggregate(detector.normal_),
            rule.name: rule.evidence(points),
        }
        normal = detector.score_points(detector.normal_)
        if normal.views.shape[1] > 1:
            arrays |= {"views": detector.score_points(points).views, "normal_views": normal.views}
            arrays["momentary"] = np.array(normal.momentary, dtype=np.int64)
        end = time.perf_counter()
    row = {
        "status": "done",
        "fit_seconds": fitted - started + trained,
        "steps": getattr(detector, "steps_", None),
        "epochs": len(getattr(detector, "history_", ())) + len(getattr(detector, "pretraining_", ())),
        "score_seconds": scored - fitted,
        "evidence_seconds": end - scored,
        "points": int(points.shape[1]),
        "rows_train": len(train),
        "rows_test": len(test),
    }
    return row, arrays


def _external_scores(task: Task, train: Series, test: Series) -> tuple[JsonDict, dict[str, Array]]:
    """Scores that were computed elsewhere, as if a detector had made them.

    Their cost is not known.
    """
    said = dict(task.params)
    scores, normal = read_given(str(said["folder"]), task.dataset, task.entity, length=len(test))
    if checksum(str(said["folder"]), task.dataset, task.entity) != said["checksum"]:
        raise InputError(f"The scores of {task} must be those the experiment was read with. The files have changed.")
    rule = make_rule("paper", **dict(task.evidence)).fit(normal[:, None])
    row = {
        "status": "done", "fit_seconds": 0.0, "steps": None, "score_seconds": 0.0, "evidence_seconds": 0.0, "points": 1,
        "rows_train": len(train), "rows_test": len(test),
    }  # fmt: skip
    return row, {"scores": scores, "normal": normal, rule.name: rule.evidence(scores[:, None])}


def run_from(task: Task, source: Source, *, checkpoint: Path | None = None) -> Outcome:
    """:func:`run_task` with the series of a source.

    A pooled task needs those of other entities too.
    """
    return run_task(task, *source.pair(task.entity), source=source, checkpoint=checkpoint)


def run_task(
    task: Task, train: Series, test: Series, *, source: Source | None = None, checkpoint: Path | None = None
) -> Outcome:
    """Fit, score, and say what it cost.

    An exception becomes a row with its reason and a command that repeats it.

    Parameters
    ----------
    task : Task
    train, test : Series
        Of the task's entity. Labels are dropped before the detector sees them.
    source : Source, optional
        Where the training series of the other entities are, for a pooled task.
    checkpoint : path, optional
        Where a network's training is kept after every epoch, and continues from.

    Examples
    --------
    >>> from tisat_bench.sources import Source
    >>> from tisat_bench.task import make_task
    >>> train, test = Source("plants").pair("plant-0")
    >>> task = make_task(dataset="plants", entity="plant-0", detector="last-value", fingerprint=fingerprint(train, test))
    >>> outcome = run_task(task, train, test)
    >>> outcome.row["status"], outcome.arrays["scores"].shape
    ('done', (6000,))
    """
    reset_peak_memory()
    arrays: dict[str, Array] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            row, arrays = _compute(task, train, test, source, checkpoint)
        except Exception as error:  # the only place that may: a failure is a row
            row = _failed(task, f"{type(error).__name__}: {error}", traceback.format_exc())
    said = sorted({f"{one.category.__name__}: {one.message}" for one in caught})
    return _outcome(task, {**row, "warnings": said[:20], "peak_bytes": peak_memory()}, arrays)


def lost_task(task: Task, reason: str) -> Outcome:
    """The row of a task whose worker did not live to write one."""
    return _outcome(task, {**_failed(task, reason, ""), "warnings": [], "peak_bytes": 0}, {})


def _failed(task: Task, reason: str, trace: str) -> JsonDict:
    return {"status": "failed", "reason": reason, "traceback": trace, "command": task.command}


def _outcome(task: Task, row: JsonDict, arrays: dict[str, Array]) -> Outcome:
    finished = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    whole = {"id": task.id, "task": task.to_json(), **row, "machine": machine(), "finished": finished}
    return Outcome(task, whole, arrays)
