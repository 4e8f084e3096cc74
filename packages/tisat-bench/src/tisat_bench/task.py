"""Task: one detector on one entity with one seed, as a frozen value whose hash is its name.

Everything that a result depends on is a field: change any of them and it is another task. Two tasks with the same hash give
the same scores on the same machine. This module does not know how a task is run or where results lie.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tisat import __version__, registry
from tisat.alarms.rules import make_rule
from tisat.errors import InputError, ParameterError
from tisat.series import Series
from tisat.utils.near_names import meant
from tisat.utils.types import JsonDict, JsonMap
from tisat_bench.external_scores import checksum

Plain: TypeAlias = Any  # None, bool, int, float, str, or a tuple of them: what JSON can say
Options: TypeAlias = tuple[tuple[str, Plain], ...]  # (name, value), by name

SEED_NAME = "random_state"  # the constructor argument that takes the seed
HASH_DIGITS = 16  # of sha256: 64 bits, a clash among a million tasks has probability 1e-7


def freeze(value: object, *, whose: str) -> Plain:
    """``value`` with lists as tuples; refuses what JSON cannot say exactly.

    Examples
    --------
    >>> freeze({"window": 10, "widths": [1, 2]}, whose="a task")
    (('widths', (1, 2)), ('window', 10))
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return tuple(freeze(item, whose=whose) for item in value)
    if isinstance(value, Mapping):
        return tuple(sorted((str(key), freeze(item, whose=whose)) for key, item in value.items()))
    raise ParameterError(
        f"The parameters of {whose} must be numbers, text, None or lists of them. Got {value!r} instead."
    )


def fingerprint(train: Series, test: Series) -> str:
    """A hash of every value and label a task sees.

    The same rows give the same text on every machine.

    Examples
    --------
    >>> one = Series([[1.0], [2.0]], labels=[0, 1])
    >>> fingerprint(one, one) == fingerprint(one, one[1:])
    False
    """
    digest = hashlib.sha256()
    for series in (train, test):
        values = np.ascontiguousarray(series.values)
        digest.update(f"{values.dtype.str}{values.shape}{series.channels}".encode())
        digest.update(values.data)
        if series.labels is not None:
            digest.update(np.packbits(series.labels).tobytes())
    return digest.hexdigest()[:HASH_DIGITS]


@dataclass(frozen=True)
class Task:
    """One detector on one entity with one seed.

    Made by :func:`make_task`, which fills in the detector's full parameters. ``repr`` is the constructor call, ``to_json``
    and ``from_json`` are exact, ``id`` is the content hash.
    """

    dataset: str  # name of the data set
    entity: str  # machine, channel or plant
    detector: str  # name in the registry
    params: Options  # the detector's full parameters, without the seed
    seed: int | None  # None: the detector has no randomness
    evidence: Options  # options of the paper's alarm rule, whose evidence is computed where the points are
    fingerprint: str  # of the data
    version: str = __version__  # of the package
    pooled: tuple[str, ...] = ()  # entities one model is trained on together; none: on its own entity alone
    code: str = ""  # a hash of the file that defines a detector of your own; none for those of the package

    @cached_property
    def id(self) -> str:
        """The content hash: 16 hexadecimal digits of sha256 over every field."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:HASH_DIGITS]

    def to_json(self) -> JsonDict:
        """The fields as JSON can say them."""
        document = {one.name: getattr(self, one.name) for one in fields(self)}
        document |= {"params": dict(self.params), "evidence": dict(self.evidence)}
        for later in ("pooled", "code"):  # as before there were such tasks: the hashes of others stay
            if not document[later]:
                del document[later]
        return document

    @classmethod
    def from_json(cls, document: JsonMap) -> Task:
        """The task that :meth:`to_json` described."""
        entries = dict(document)
        try:
            for name in ("params", "evidence"):
                entries[name] = freeze(entries[name], whose="a task")
            entries["pooled"] = tuple(entries.get("pooled", ()))
            return cls(**entries)
        except (KeyError, TypeError) as error:
            raise InputError(f"A task must have the fields of tisat_bench.task.Task. It does not: {error}.") from None

    @cached_property
    def training_id(self) -> str:
        """The hash of what is trained: the same for every entity of one pooled model."""
        if not self.pooled:
            return self.id
        shared = {name: value for name, value in self.to_json().items() if name not in ("entity", "fingerprint")}
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()[:HASH_DIGITS]

    def build(self) -> Any:
        """The detector, not fitted."""
        return build(self.detector, self.params, self.seed)

    @property
    def command(self) -> str:
        """A command that runs this task alone and shows its whole error."""
        return f"tisat bench --task {shlex.quote(json.dumps(self.to_json(), sort_keys=True))}"

    def __str__(self) -> str:
        seed = "" if self.seed is None else f", seed {self.seed}"
        together = f", trained on {len(self.pooled)} entities together" if self.pooled else ""
        return f"{self.detector} on {self.dataset} {self.entity}{seed}{together}"


def build(detector: str, params: Options, seed: int | None) -> Any:
    """A detector by its name, parameters and seed, not fitted."""
    cls = registry.resolve(detector)
    given = dict(option for option in params if option not in cls.traits.retired.items())
    if seed is not None:
        given[SEED_NAME] = seed
    return cls(**given)


def code_of(detector: str) -> str:
    """A hash of the file that defines a detector of your own, which may change between two runs; empty for those of the package.

    Examples
    --------
    >>> code_of("pca")
    ''
    """
    cls = registry.resolve(detector)
    if cls.__module__.partition(".")[0] == registry.__name__.partition(".")[0]:
        return ""
    try:
        source = Path(inspect.getfile(cls)).read_bytes()
    except (TypeError, OSError):  # typed in, not written in a file
        return ""
    return hashlib.sha256(source).hexdigest()[:HASH_DIGITS]


SCORES = "scores"  # what a task calls its detector where the scores were computed elsewhere


def is_random(detector: str) -> bool:
    """Whether a detector takes a seed.

    Examples
    --------
    >>> is_random("random-guess"), is_random("last-value")
    (True, False)
    """
    return detector != SCORES and SEED_NAME in registry.resolve(detector)().get_params(deep=False)


def make_task(
    *,
    dataset: str,
    entity: str,
    detector: str,
    fingerprint: str,
    params: JsonMap | None = None,
    seed: int | None = 0,
    evidence: JsonMap | None = None,
    pooled: Iterable[str] = (),
) -> Task:
    """A task with the detector's full parameters.

    A detector without randomness gets no seed.

    Examples
    --------
    >>> task = make_task(dataset="smd", entity="machine-1-1", detector="ewma", fingerprint="0" * 16)
    >>> task.params, task.seed, len(task.id)
    ((('smoothing', 0.1),), None, 16)
    """
    rule = freeze(make_rule("paper", **(evidence or {})).params(), whose="the paper's rule")
    if detector == SCORES:
        folder = str((params or {})["folder"])
        kept = freeze({"folder": folder, "checksum": checksum(folder, dataset, entity)}, whose="scores")
        return Task(dataset, entity, SCORES, kept, None, rule, fingerprint)
    cls = registry.resolve(detector)
    params_known = cls().get_params(deep=False)
    params_given = dict(params or {})
    if SEED_NAME in params_given:
        raise ParameterError(f"The seed of {detector!r} must be given as 'seeds', not as the parameter {SEED_NAME!r}.")
    unknown = [name for name in params_given if name not in params_known]
    if unknown:
        raise ParameterError(
            f"The detector {detector!r} must have parameters among {', '.join(params_known)}. Got {unknown[0]!r} instead.{meant(unknown[0], params_known)}"
        )
    made = cls(**params_given)
    full = {name: getattr(made, name) for name in made.get_params(deep=False) if name != SEED_NAME}
    full |= cls.traits.retired  # as before they were: the hashes of results stay
    return Task(
        dataset=dataset,
        entity=entity,
        detector=detector,
        params=freeze(full, whose=f"detector {detector!r}"),
        seed=seed if SEED_NAME in params_known else None,
        evidence=rule,
        fingerprint=fingerprint,
        pooled=tuple(pooled),
        code=code_of(detector),
    )
