"""Experiments as files: a TOML file names data sets, systems, seeds and what to show; here it becomes tasks.

A file may say ``systems = "systems.toml"`` to take its data sets and systems from another, so that several tables are made
from the same scores. An experiment does not run anything.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from tisat.alarms.rules import RULES, make_rule
from tisat.errors import InputError, ParameterError
from tisat.utils.near_names import meant, meant_file
from tisat.utils.types import Flags, JsonDict, JsonMap, Options
from tisat.utils.validation import check_choice, check_integer
from tisat_bench.published_figures import read_printed
from tisat_bench.sources import SOURCES, Source
from tisat_bench.task import SCORES, Task, fingerprint, is_random, make_task

Labels: TypeAlias = Flags | None
KINDS = ("spd", "adjusted", "baselines", "sweep", "rules")
RULE_ORDER = ("threshold", "paper", "excess")
KEYS = {"title", "kind", "delta_max", "sweep", "rules", "seeds", "reference", "note", "printed", "said"}
KEYS |= {"systems", "data", "system", "rule"}  # tables, and the file to take some of them from
SYSTEM_KEYS = {"name", "detector", "scores", "params", "seeds", "entities", "data", "note", "ours", "pooled"}


@dataclass(frozen=True)
class System:
    """One row of a table: a detector with its parameters."""

    name: str  # as printed
    detector: str  # in the registry
    params: Options  # what differs from the defaults
    seeds: tuple[int, ...]  # ignored where the detector has no randomness
    entities: Mapping[str, tuple[str, ...]]  # data set -> fewer entities, for the costliest; absent: all
    data: tuple[str, ...] | None  # data sets it is run on; None: all
    note: str  # printed in the caption
    ours: bool  # not in the paper
    pooled: bool = False  # one model trained on all entities of a data set, instead of one each


@dataclass(frozen=True)
class Experiment:
    """A table or picture to be made, and the scores it needs."""

    name: str  # the file's stem
    title: str
    kind: str  # one of KINDS
    delta_max: int  # of the headline
    sweep: tuple[int, ...]  # further values of delta_max
    rules: tuple[str, ...]  # alarm rules every system is shown under
    rule_options: Mapping[str, Options]  # rule -> what differs from its defaults
    sources: Mapping[str, Source]  # data set -> where it lies
    entities: Mapping[str, tuple[str, ...] | None]  # data set -> chosen entities; None: all that are there
    systems: tuple[System, ...]
    reference: str  # the system differences are taken from
    note: str
    printed: JsonMap | None = None  # figures printed elsewhere, see tisat_bench.published_figures
    titles: Mapping[str, str] = field(default_factory=dict)  # what tables call data sets of your own
    said: Mapping[str, str] = field(default_factory=dict)  # for captions: of the "cost", and why some were "not_run"
    _seen: dict[tuple[str, str], tuple[str, Labels]] = field(default_factory=dict, repr=False, compare=False)
    _tasks: dict[str, tuple[Task, ...]] = field(default_factory=dict, repr=False, compare=False)  # by system

    def restricted(self, only: Iterable[str]) -> Experiment:
        """The same with only these systems, by name or by detector."""
        names = list(only)
        for name in names:
            if not any(name in (system.name, system.detector) for system in self.systems):
                known = [system.name for system in self.systems]
                raise ParameterError(
                    f"The experiment {self.name!r} must have a system {name!r}. It has {', '.join(known)}.{meant(name, known)}"
                )
        return replace(self, systems=tuple(s for s in self.systems if s.name in names or s.detector in names))

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The entities of each data set: the chosen ones, or all whose values are there."""
        return {name: source.names(self.entities[name]) for name, source in self.sources.items()}

    def fingerprint_of(self, dataset: str, entity: str) -> str:
        """The fingerprint of an entity's data, computed once."""
        return self._fingerprint_and_labels(dataset, entity)[0]

    def labels_of(self, dataset: str, entity: str) -> Labels:
        """The test labels of an entity, kept from when its data were read for the fingerprint."""
        return self._fingerprint_and_labels(dataset, entity)[1]

    def _fingerprint_and_labels(self, dataset: str, entity: str) -> tuple[str, Labels]:
        if (dataset, entity) not in self._seen:
            train, test = self.sources[dataset].pair(entity)
            self._seen[dataset, entity] = fingerprint(train, test), test.labels
        return self._seen[dataset, entity]

    def tasks_of(self, system: System) -> tuple[Task, ...]:
        """The tasks of one system: seed by seed, data set by data set; made once."""
        if system.name not in self._tasks:
            self._tasks[system.name] = tuple(self._make_tasks(system))
        return self._tasks[system.name]

    def _make_tasks(self, system: System) -> Iterator[Task]:
        seeds: tuple[int | None, ...] = system.seeds if is_random(system.detector) else (None,)
        for seed in seeds:
            for dataset in [name for name in self.sources if system.data is None or name in system.data]:
                # The others differ from the first by entity and data alone, but for scores, which have checksums.
                first: Task | None = None
                for entity in system.entities.get(dataset, self.names[dataset]):
                    fingerprint = self.fingerprint_of(dataset, entity)
                    if first is not None and first.detector != SCORES:
                        yield replace(first, entity=entity, fingerprint=fingerprint)
                        continue
                    first = make_task(
                        dataset=dataset,
                        entity=entity,
                        detector=system.detector,
                        params=system.params,
                        seed=seed,
                        evidence=self.rule_options.get("paper"),
                        fingerprint=fingerprint,
                        pooled=self.names[dataset] if system.pooled else (),
                    )
                    yield first

    def tasks(self) -> Iterator[Task]:
        """Every task, system by system in the order of the file."""
        for system in self.systems:
            yield from self.tasks_of(system)


def _read(path: Path) -> JsonDict:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"File not found: {str(path)!r}. An experiment must be a TOML file.{meant_file(path)}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"The experiment file {str(path)!r} must be a TOML file. {error}.") from None


def _tables(document: JsonMap, name: str, where: str) -> list[JsonDict]:
    """The tables ``[[name]]`` of an experiment file."""
    tables: object = document.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise ParameterError(f"Each '{name}' in {where} must begin with [[{name}]], in double brackets.")
    return tables


def _refuse_unknown(found: JsonMap, known: set[str], where: str) -> None:
    for key in found:
        if key not in known:
            must = f"The keys of {where} must be among {', '.join(sorted(known))}."
            raise ParameterError(f"{must} Got {key!r} instead.{meant(key, known)}")


def _system(entry: JsonMap, seeds: tuple[int, ...], folder: Path, where: str) -> System:
    _refuse_unknown(entry, SYSTEM_KEYS, f"a system in {where}")
    if "scores" in entry:
        wrong = next((key for key in ("detector", "params", "seeds", "pooled") if key in entry), None)
        if wrong is not None or "name" not in entry:
            raise ParameterError(
                f"A system of scores in {where} must have a name, and no {wrong or 'detector'}: the scores are there already."
            )
        entry = {**entry, "detector": SCORES, "params": {"folder": str((folder / str(entry["scores"])).resolve())}}
    if "detector" not in entry:
        raise ParameterError(f"Every system in {where} must name its detector. {entry.get('name', 'One')!r} does not.")
    system_seeds = tuple(check_integer(seed, "seeds", where, minimum=0) for seed in entry.get("seeds", seeds))
    return System(
        name=str(entry.get("name", entry["detector"])),
        detector=str(entry["detector"]),
        params=dict(entry.get("params", {})),
        seeds=system_seeds,
        entities={name: tuple(these) for name, these in entry.get("entities", {}).items()},
        data=tuple(entry["data"]) if "data" in entry else None,
        note=str(entry.get("note", "")),
        ours=bool(entry.get("ours", False)),
        pooled=bool(entry.get("pooled", False)),
    )


def _source(entry: JsonMap, folder: Path, data: str | None, where: str) -> tuple[str, Source]:
    """A published data set by name, or files of your own: a path and a name for the tables.

    The path is one from the experiment file's folder, or else from the folder of the data sets.
    """
    if "path" not in entry:
        unused = next((key for key in ("train", "label") if key in entry), None)
        if unused is not None:
            raise ParameterError(
                f"The key {unused!r} of a data set in {where} must come with 'path': files of your own."
            )
        name = check_choice(entry.get("name"), "data.name", where, choices=SOURCES)
        return name, Source(name, data, entry.get("telemetry_only"))
    path = str(folder / str(entry["path"]))  # an absolute one stays as it is
    among = data or os.environ.get("TISAT_DATA")
    if among and not Path(path).exists() and (Path(among) / str(entry["path"])).exists():
        path = str(Path(among) / str(entry["path"]))
    name = str(entry.get("name") or Path(path).name)
    if name in SOURCES:
        raise ParameterError(
            f"A data set of your own in {where} must have a name of its own. Got {name!r}, which is published."
        )
    return name, Source(name, path=path, train=entry.get("train"), label=entry.get("label"))


def read_experiment(path: str | Path, *, data: str | None = None) -> Experiment:
    """An experiment from its file.

    Parameters
    ----------
    path : path
        A TOML file; ``docs/benchmark.md`` lists its keys.
    data : str, optional
        The folder of the data sets; ``TISAT_DATA`` where not given.
    """
    file = Path(path)
    where = f"the experiment file {str(file)!r}"
    document = _read(file)
    shared = "systems" in document  # a list for several experiments may name data sets that this one does not have
    if shared:
        document = {**_read(file.parent / document["systems"]), **document}
    _refuse_unknown(document, KEYS, where)
    seeds = tuple(check_integer(seed, "seeds", where, minimum=0) for seed in document.get("seeds", (0,)))
    rules = document.get("rules", list(RULE_ORDER))
    for rule in rules:
        check_choice(rule, "rules", where, choices=RULES)
    for rule, options in document.get("rule", {}).items():
        make_rule(rule, **options)  # refused here, not after the work is done
    sources: dict[str, Source] = {}
    entities: dict[str, tuple[str, ...] | None] = {}
    titles: dict[str, str] = {}
    for entry in _tables(document, "data", where):
        _refuse_unknown(
            entry, {"name", "title", "entities", "telemetry_only", "path", "train", "label"}, f"a data set in {where}"
        )
        name, source = _source(entry, file.parent, data, where)
        if name in sources:
            raise ParameterError(f"The data sets in {where} must have distinct names. Got {name!r} twice.")
        sources[name] = source
        entities[name] = tuple(entry["entities"]) if "entities" in entry else None
        titles |= {name: str(entry["title"])} if "title" in entry else {}
    systems = tuple(_system(entry, seeds, file.parent, where) for entry in _tables(document, "system", where))
    names = [system.name for system in systems]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(
            f'The systems in {where} must have distinct names. Got {twice!r} twice; give one of them another name = "...".'
        )
    for system in systems:
        for dataset in (*(system.data or ()), *system.entities):
            if dataset not in sources and not (shared and dataset in SOURCES):
                raise ParameterError(
                    f"The system {system.name!r} in {where} must be run on data sets of the file. Got {dataset!r} instead."
                )
    if not sources:
        raise ParameterError(f"An experiment must have data sets. {where.capitalize()} has none.")
    return Experiment(
        name=file.stem,
        title=str(document.get("title", file.stem)),
        kind=check_choice(document.get("kind", "spd"), "kind", where, choices=KINDS),
        delta_max=check_integer(document.get("delta_max", 100), "delta_max", where, minimum=1),
        sweep=tuple(check_integer(delta, "sweep", where, minimum=1) for delta in document.get("sweep", ())),
        rules=tuple(rules),
        rule_options={rule: dict(options) for rule, options in document.get("rule", {}).items()},
        sources=sources,
        entities=entities,
        systems=systems,
        reference=check_choice(document.get("reference", names[0]), "reference", where, choices=names) if names else "",
        note=str(document.get("note", "")),
        printed=read_printed(file.parent / str(document["printed"])) if "printed" in document else None,
        titles=titles,
        said={about: str(sentence) for about, sentence in document.get("said", {}).items()},
    )
