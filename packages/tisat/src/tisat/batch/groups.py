"""Which machines share a model: by a table, by a part of their names, or by what their normal rows look like.

A shared model is learned from several machines of a group; each machine still has its own normal points, and with them its
own threshold (:func:`tisat.detectors.adapt`). This module does not know detectors.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tisat.batch.likeness import Moments, alike_groups
from tisat.batch.machines import How, Machine
from tisat.errors import DataFileError, ParameterError, TisatError

AUTO = "auto"


@dataclass(frozen=True)
class Described:
    """Summary of the normal rows of a machine."""

    machine: str
    channels: tuple[str, ...] = ()
    moments: Moments | None = None  # None: too few rows
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
        """Means and covariances of its channels."""
        try:
            series = machine.read(self.how)
        except (TisatError, OSError) as error:
            return self.lost(machine, str(error))
        return Described(machine.name, series.channels, Moments.of(series))

    def lost(self, machine: Machine, why: str) -> Described:
        """A machine that could not be looked at."""
        return Described(machine.name, trouble=why)


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
    """Groups of machines that a pooled model suits, by the measure of :func:`tisat.batch.likeness.likeness`.

    Machines with other channels are other groups; a machine with too few rows to tell is one of its own.
    """
    kinds: dict[tuple[str, ...], list[tuple[str, Moments]]] = {}
    groups: dict[str, str] = {}
    for description in described:
        if description.moments is not None:
            order = sorted(range(len(description.channels)), key=lambda channel: description.channels[channel])
            kind = tuple(description.channels[channel] for channel in order)
            kinds.setdefault(kind, []).append((description.machine, description.moments.select(order)))
        elif not description.trouble:
            groups[description.machine] = f"alone-{description.machine}"
    for number, many in enumerate(kinds.values()):
        for place, members in enumerate(alike_groups([moments for _, moments in many])):
            groups |= {many[member][0]: f"group-{number + 1}-{place + 1}" for member in members}
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
