"""Figures in small csv files, written once and read back exactly: what tables and claims are made from.

A file holds rows of one kind, with floats at six significant digits; ``about.json`` beside them says which experiment, command,
versions, entities and seeds they come from. Nothing is computed here, and no scores are kept.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from tisat import __version__, registry
from tisat.errors import DataFileError, InputError
from tisat.persistence.model_file import write_bytes
from tisat.utils.tables import csv_text
from tisat.utils.types import JsonDict, Params
from tisat_bench import figures as flat
from tisat_bench.datasets import NAMES, labels
from tisat_bench.evaluation import Results
from tisat_bench.experiment import Experiment, System
from tisat_bench.sources import PLANTS

Row = TypeVar("Row")
DIGITS = 6


def _text(value: object) -> str:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def write_rows(path: Path, kind: type[Any], rows: Sequence[Any]) -> None:
    """Rows of one dataclass as csv, whole or not at all."""
    names = [one.name for one in fields(kind)]
    write_bytes(path, csv_text(names, ([_text(getattr(row, name)) for name in names] for row in rows)).encode())


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """The rows that :func:`write_rows` wrote; none where there is no such file."""
    if not path.is_file():
        return []
    types = get_type_hints(kind)
    convert: dict[Any, Callable[[str], Any]] = {float: float, int: int, str: str, bool: "True".__eq__}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        known = [
            name for name in types if name in (rows[0] if rows else types)
        ]  # a field with a default may be younger
        return [kind(**{name: convert[types[name]](row[name]) for name in known}) for row in rows]
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"The file {str(path)!r} must hold rows of {kind.__name__}. It does not: {error}.") from None


class Titles(dict[str, str]):
    """Titles of data sets; a user's own keep their name."""

    def __missing__(self, name: str) -> str:
        return name


TITLES = Titles(smd="SMD", msl="MSL", smap="SMAP", swat="SWaT", psm="PSM")


@dataclass(frozen=True)
class Frozen:
    """The figures of one experiment."""

    about: JsonDict
    figures: list[flat.Figure] = field(default_factory=list)
    differences: list[flat.Difference] = field(default_factory=list)
    rule_differences: list[flat.Difference] = field(default_factory=list)
    entities: list[flat.EntityFigure] = field(default_factory=list)
    adjusted: list[flat.Adjusted] = field(default_factory=list)
    baselines: list[flat.Baseline] = field(default_factory=list)
    random_baselines: list[flat.RandomBaseline] = field(default_factory=list)

    @property
    def titles(self) -> Titles:
        """Titles of the data sets in tables."""
        return Titles({**TITLES, **self.about.get("titles", {})})


# The kind of rows in each file: what the fields of Frozen are lists of.
FILES: dict[str, type[Any]] = {
    name: get_args(kind)[0] for name, kind in get_type_hints(Frozen).items() if name != "about"
}


def label_sets(experiment: Experiment) -> dict[str, list[Any]]:
    """The test labels of every published data set whose labels are there, all entities of them, values or not."""
    labels_by_set: dict[str, list[Any]] = {}
    data = next((source.data for source in experiment.sources.values()), None)
    for name in NAMES:
        try:
            many = list(labels(name, data).values())
        except DataFileError:
            continue
        if many:  # a folder without an entity is what a failed download has left
            labels_by_set[name] = many
    if PLANTS in experiment.sources:
        source = experiment.sources[PLANTS]
        labels_by_set[PLANTS] = [source.pair(entity)[1].labels for entity in experiment.names[PLANTS]]
    return labels_by_set


def _settings(system: System) -> Params:
    """Preset and anchoring in use, for captions."""
    if system.detector not in registry.names():
        return {}
    made = registry.resolve(system.detector)(**system.params)
    in_use = {name: getattr(made, name) for name in made.get_params(deep=False)}
    return {name: in_use[name] for name in ("preset", "anchor") if in_use.get(name) is not None}


PLANNED = ("title", "kind", "delta_max", "sweep", "rules", "rule_options", "reference", "note", "printed")
OF_A_SYSTEM = ("name", "detector", "params", "pooled", "ours", "note")


def about(evaluation: Results) -> JsonDict:
    """Which experiment, command, versions and machines figures come from, and what is missing: all that captions say."""
    plan, rows, runs = evaluation.experiment, evaluation.rows.values(), evaluation.runs
    machines = sorted({json.dumps(row["machine"], sort_keys=True) for row in rows})
    document = {
        "experiment": plan.name,
        **{name: getattr(plan, name) for name in PLANNED},
        "command": f"tisat bench experiments/{plan.name}.toml --freeze experiments/frozen",
        "versions": sorted({row["task"]["version"] for row in rows} or {__version__}),
        "machines": [json.loads(one) for one in machines],
        "data": {name: len(entities) for name, entities in evaluation.entities.items()},
        "systems": [
            {**{name: getattr(system, name) for name in OF_A_SYSTEM}, "settings": _settings(system)}
            for system in plan.systems
        ],
        "failures": sorted(
            {
                f"{run.system.name} on {dataset} {entity}: {reason}"
                for (_, dataset), many in runs.items()
                for run in many
                for entity, reason in run.failed.items()
            }
        ),
        "not_run": sorted(
            f"{name} on {dataset}: {sum(len(run.missing) for run in many)} tasks"
            for (name, dataset), many in runs.items()
            if any(run.missing for run in many)
        ),
        "titles": plan.titles,
        "said": plan.said,
    }
    read_again: JsonDict = json.loads(json.dumps(document))  # fresh or frozen, it is the same
    return read_again


def gather(evaluation: Results) -> Frozen:
    """Every figure that an experiment of this kind shows."""
    plan = evaluation.experiment
    kind = plan.kind
    settings: JsonDict = {"rules": plan.rules, "delta_max": plan.delta_max}
    deltas = tuple(sorted({*plan.sweep, plan.delta_max})) if kind in ("sweep", "baselines") else (plan.delta_max,)
    set_labels = label_sets(plan) if kind in ("adjusted", "baselines", "spd", "sweep") else {}
    figures: dict[str, list[Any]] = {}
    if kind in ("spd", "sweep", "rules"):
        figures["figures"] = flat.figures(evaluation, rules=plan.rules, deltas=deltas)
    if kind == "spd":
        figures["differences"] = flat.differences(evaluation, reference=plan.reference, **settings)
        figures["entities"] = flat.entity_figures(evaluation, **settings)
    if kind == "rules":
        figures["rule_differences"] = flat.rule_differences(evaluation, against="threshold", **settings)
    if kind == "adjusted":
        figures["adjusted"] = flat.adjusted_figures(evaluation)
    if kind in ("adjusted", "baselines"):
        figures["random_baselines"] = flat.random_baseline_figures(set_labels)
    figures["baselines"] = flat.baseline_figures(set_labels, deltas=deltas, baselines=evaluation.baselines_on)
    return Frozen(about(evaluation), **figures)


def _coverage(frozen: Frozen) -> dict[tuple[str, str], int]:
    """The number of entities behind the figures of each data set and system."""
    return {(row.dataset, row.system): row.entities for rows in (frozen.figures, frozen.adjusted) for row in rows}


def _systems(frozen: Frozen) -> JsonDict:
    return {
        system["name"]: (system["detector"], system["params"], system["pooled"]) for system in frozen.about["systems"]
    }


def with_earlier(frozen: Frozen, earlier: Frozen) -> Frozen:
    """Add the figures that an earlier freeze has and this one lacks.

    A system on a data set keeps its earlier figures where they cover more entities, provided that the experiment still describes
    the system as it did then. Hence a run of a part adds to what is frozen, and takes nothing away.

    Parameters
    ----------
    frozen : Frozen
        The figures of this run.
    earlier : Frozen
        The figures of the same experiment that are in the folder.

    Returns
    -------
    Frozen
        Figures of both; ``about`` names the versions and machines of both.
    """
    have, had = _coverage(frozen), _coverage(earlier)
    now, then = _systems(frozen), _systems(earlier)
    earlier_rows = {
        pair
        for pair, entities in had.items()
        if entities > have.get(pair, 0) and pair[0] in frozen.about["data"] and now.get(pair[1]) == then[pair[1]]
    }
    if not earlier_rows:
        return frozen
    datasets, systems, rules = list(frozen.about["data"]), list(now), list(frozen.about["rules"])
    merged: dict[str, list[Any]] = {}
    for name in ("figures", "differences", "rule_differences", "entities", "adjusted"):
        rows = [row for row in getattr(frozen, name) if (row.dataset, row.system) not in earlier_rows]
        rows += [row for row in getattr(earlier, name) if (row.dataset, row.system) in earlier_rows]
        if name == "differences":
            rows.sort(key=lambda row: (datasets.index(row.dataset), rules.index(row.rule), systems.index(row.system)))
        else:
            rows.sort(key=lambda row: (datasets.index(row.dataset), systems.index(row.system)))
        merged[name] = rows
    about = dict(frozen.about)
    names = tuple(f"{system} on {dataset}{end}" for dataset, system in earlier_rows for end in ": ")
    for name in ("not_run", "failures"):
        about[name] = sorted(
            [line for line in frozen.about[name] if not line.startswith(names)]
            + [line for line in earlier.about[name] if line.startswith(names)]
        )
    for name in ("versions", "machines"):
        about[name] = [*earlier.about[name], *(one for one in frozen.about[name] if one not in earlier.about[name])]
    return replace(frozen, about=about, **merged)


def frozen_folder(folder: Path, experiment: str) -> Path:
    """The folder that the figures of an experiment go to."""
    return folder / experiment


def write_frozen(folder: Path, frozen: Frozen) -> Path:
    """Write one folder of csv files and ``about.json``, named after the experiment.

    Add to what is frozen there.
    """
    target = frozen_folder(folder, str(frozen.about["experiment"]))
    if (target / "about.json").is_file():
        frozen = with_earlier(frozen, read_frozen(target))
    target.mkdir(parents=True, exist_ok=True)
    for name, kind in FILES.items():
        rows = getattr(frozen, name)
        if rows:
            write_rows(target / f"{name}.csv", kind, rows)
    write_bytes(target / "about.json", (json.dumps(frozen.about, indent=1) + "\n").encode())
    return target


def read_frozen(folder: Path) -> Frozen:
    """The figures of one experiment's folder."""
    about = folder / "about.json"
    if not about.is_file():
        raise InputError(f"The folder {str(folder)!r} must hold frozen results. It has no about.json.")
    return Frozen(
        about=json.loads(about.read_text(encoding="utf-8")),
        **{name: read_rows(folder / f"{name}.csv", kind) for name, kind in FILES.items()},
    )
