"""Which machines share a model: by a table, by a part of their names, or by what their normal rows look like.

A shared model is learned from several machines of a group; each machine still has its own normal points, and with them its
own threshold (:func:`tisat.detectors.adapt`). This module does not know detectors.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tisat.batch.machines import How, Machine
from tisat.errors import DataFileError, ParameterError, TisatError
from tisat.gap_filling import carry_forward
from tisat.utils.types import Array

AUTO = "auto"
MOST_GROUPS = 12
# Below it the machines are not told apart: one group (Kaufman, Rousseeuw 1990, table 4: no structure).
LEAST_SILHOUETTE = 0.25
ROWS = 5000  # of each machine that are looked at


@dataclass(frozen=True)
class Described:
    """Summary of the normal rows of a machine."""

    machine: str
    channels: tuple[str, ...] = ()
    figures: tuple[float, ...] = ()  # for each channel: median, spread, how much of it moves from row to row
    trouble: str = ""


@dataclass(frozen=True)
class Describe:
    """A job for an engine: look at one machine.

    Parameters
    ----------
    how : mapping
        How files are read.
    """

    how: How = field(default_factory=dict)

    def __call__(self, machine: Machine) -> Described:
        """Medians, spreads and movement of its channels."""
        try:
            series = machine.read(self.how)
        except (TisatError, OSError) as error:
            return self.lost(machine, str(error))
        return Described(
            machine.name, series.channels, tuple(map(float, _figures(carry_forward(series.values[-ROWS:])).ravel()))
        )

    def lost(self, machine: Machine, why: str) -> Described:
        """A machine that could not be looked at."""
        return Described(machine.name, trouble=why)


def _figures(values: Array) -> Array:
    """``(C, 3)``: median, spread between the quartiles (the deviation where they are equal), movement in that unit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a channel that says nothing has no figures, which are 0
        low, middle, high = np.nanquantile(values, [0.25, 0.5, 0.75], axis=0)
        spread = np.where(high > low, high - low, np.nanstd(values, axis=0))
        moved = np.nanmean(np.abs(np.diff(values, axis=0)), axis=0)
    found = np.stack([middle, spread, moved / np.where(spread > 0, spread, 1.0)], axis=1)
    return np.asarray(np.nan_to_num(found, posinf=0.0, neginf=0.0))


def by_table(path: str | Path, machines: Iterable[Machine]) -> dict[str, str]:
    """The group of each machine, from a csv file with the columns ``machine`` and ``group``."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        group_of = {row["machine"]: row["group"] for row in rows}
    except (OSError, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise DataFileError(
            f"The groups {str(path)!r} must be a csv file with the columns machine and group. {error!r}."
        ) from None
    groups = {}
    for machine in machines:
        if not group_of.get(machine.name):
            raise DataFileError(f"The groups in {str(path)!r} must name every machine. There is no {machine.name!r}.")
        groups[machine.name] = group_of[machine.name]
    return groups


def by_name(pattern: str, machines: Iterable[Machine]) -> dict[str, str]:
    """The group of each machine: what a regular expression finds in its name, its first bracket where it has one.

    Examples
    --------
    >>> by_name("^[a-z]+", [Machine("pump-1", ("a.csv",)), Machine("fan-7", ("b.csv",))])
    {'pump-1': 'pump', 'fan-7': 'fan'}
    """
    try:
        search = re.compile(pattern)
    except re.error as error:
        raise ParameterError(
            f"--group-by must be {AUTO!r}, a csv file, or a regular expression. {pattern!r} is none: {error}."
        ) from None
    groups = {}
    for machine in machines:
        match = search.search(machine.name)
        if match is None or not match.group(1 if search.groups else 0):
            raise ParameterError(
                f"The pattern of --group-by must be found in every machine's name. {pattern!r} is not in {machine.name!r}."
            )
        groups[machine.name] = match.group(1 if search.groups else 0)
    return groups


def by_likeness(described: Sequence[Described]) -> dict[str, str]:
    """Groups of machines whose channels have like levels, spreads and movement.

    Machines with other channels are other groups. Within, k-means on robustly scaled figures, with as many clusters as have the
    largest silhouette; one where that is below ``LEAST_SILHOUETTE``.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    kinds: dict[tuple[str, ...], list[Described]] = {}
    for description in described:
        if not description.trouble:
            kinds.setdefault(tuple(sorted(description.channels)), []).append(description)
    groups: dict[str, str] = {}
    for number, many in enumerate(kinds.values()):
        order = [np.argsort(description.channels, kind="stable") for description in many]
        table = np.array(
            [
                np.reshape(description.figures, (-1, 3))[rows].ravel()
                for description, rows in zip(many, order, strict=True)
            ]
        )
        middle = np.median(table, axis=0)
        spread = np.median(np.abs(table - middle), axis=0)
        scaled = np.arcsinh((table - middle) / np.where(spread > 0, spread, np.maximum(np.abs(middle), 1e-9)))
        labels, best = np.zeros(len(many), dtype=np.int64), LEAST_SILHOUETTE
        distinct = len(np.unique(scaled, axis=0))
        for k in range(2, min(MOST_GROUPS, len(many) - 1, distinct) + 1):
            tried = KMeans(k, n_init=5, random_state=0).fit_predict(scaled)
            score = float(silhouette_score(scaled, tried))
            if score > best:
                labels, best = tried, score
        names: dict[int, int] = {}
        # Numbered in the order of the machines, whatever k-means calls them.
        for description, label in zip(many, labels, strict=True):
            place = names.setdefault(int(label), len(names) + 1)
            groups[description.machine] = f"group-{number + 1}-{place}"
    return groups


def group_machines(
    asked: str, machines: Sequence[Machine], describe: Callable[[], Sequence[Described]]
) -> dict[str, str]:
    """The group of each machine, as ``--group-by`` asks for: ``auto``, a csv file, or a regular expression.

    ``describe`` looks at the machines; it is called for ``auto`` alone. A machine that could not be looked at is in no group.
    """
    if asked == AUTO:
        return by_likeness(describe())
    if asked.lower().endswith(".csv"):
        return by_table(asked, machines)
    return by_name(asked, machines)
