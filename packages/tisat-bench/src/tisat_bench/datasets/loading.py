"""``load`` and ``labels``: a data set by name, from the folder the user names.

The folder is the ``data`` argument, else the environment's ``TISAT_DATA``, else ``~/.cache/tisat``. Nothing is
downloaded here; that is asked for with ``tisat data download``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from tisat.errors import DataFileError, ParameterError
from tisat.utils.types import Flags
from tisat.utils.validation import check_choice, check_flag
from tisat_bench.datasets import own_files, psm, smd, swat, telemanom
from tisat_bench.datasets.base import Dataset
from tisat_bench.datasets.cards import NAMES, Card
from tisat_bench.datasets.cards import card as read_card

ENVIRONMENT = "TISAT_DATA"
# The module that reads each: labels(folder, card, strict=...) and dataset(folder, card, strict=..., and what is its own).
LOADERS: dict[str, ModuleType] = {"smd": smd, "msl": telemanom, "smap": telemanom, "swat": swat, "psm": psm}


def data_root(data: str | Path | None = None) -> Path:
    """The folder under which data sets lie: the argument, else ``TISAT_DATA``, else ``~/.cache/tisat``.

    Parameters
    ----------
    data : str or Path, optional
        A folder; else ``TISAT_DATA``, else ``~/.cache/tisat``.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> data_root("data").name
    'data'
    """
    chosen = data if data is not None else os.environ.get(ENVIRONMENT) or Path("~/.cache/tisat")
    return Path(chosen).expanduser()


def _folder(card: Card, data: str | Path | None) -> Path:
    root = data_root(data)
    folder = root / card.folder
    if not folder.is_dir():
        raise DataFileError(
            f"The data set {card.name!r} must lie in {str(folder)!r}. There is no such folder; "
            f"name its parent with data=... or {ENVIRONMENT}. To get it: {card.obtain}"
        )
    return folder


def labels(name: str, data: str | Path | None = None, *, strict: bool = True) -> dict[str, Flags]:
    """The test labels of every entity that has them, without reading any values.

    Parameters
    ----------
    name : one of "smd", "msl", "smap", "swat", "psm"
        A data set.
    data : folder, optional
        The folder that holds the data set's folder; ``TISAT_DATA`` or ``~/.cache/tisat`` where not given.

    strict : bool
        Refuse a file whose rows are not as many as published.

    Returns
    -------
    labels : dict of entity name to a bool array of shape (T,)

    Examples
    --------
    >>> labels("smd")  # doctest: +SKIP
    """
    card = read_card(check_choice(name, "name", "labels", choices=NAMES))
    found: dict[str, Flags] = LOADERS[name].labels(
        _folder(card, data), card, strict=check_flag(strict, "strict", "labels")
    )
    return found


def _choose(dataset: Dataset, entities: Iterable[str] | str | None) -> Dataset:
    if entities is None:
        if not dataset.entities:
            raise DataFileError(
                f"The data set {dataset.name!r} must have the values of at least one entity. Got none; "
                f"run 'tisat data verify {dataset.name}' to see what is missing."
            )
        return dataset
    names = [entities] if isinstance(entities, str) else list(entities)
    for name in names:
        if name in dataset.missing:
            raise DataFileError(
                f"The entity {name!r} of data set {dataset.name!r} must have its train and test values in the folder. "
                f"They are missing; with values there are: {', '.join(dataset.names) or 'none'}."
            )
        if name not in dataset:
            raise ParameterError(
                f"The 'entities' parameter of load must name entities of {dataset.name!r}: "
                f"{', '.join(dataset.names)}. Got {name!r} instead."
            )
    return replace(dataset, entities=tuple(dataset[name] for name in dict.fromkeys(names)))


def published(
    card: Card, data: str | Path | None, *, telemetry_only: bool, version: str | None, strict: bool
) -> Dataset:
    """The data set from the publisher's own files."""
    reader = LOADERS[card.name]
    own: dict[ModuleType, dict[str, object]] = {
        swat: {"version": version},
        telemanom: {"telemetry_only": telemetry_only},
    }
    found: Dataset = reader.dataset(_folder(card, data), card, strict=strict, **own.get(reader, {}))
    return found


def load(
    name: str,
    data: str | Path | None = None,
    entities: Iterable[str] | str | None = None,
    telemetry_only: bool | None = None,  # noqa: FBT001
    *,
    version: str | None = None,
    strict: bool = True,
    train: float | int | None = None,
) -> Dataset:
    """A data set of the paper, from the files as their publisher lays them out.

    A path reads your own files.

    Values are read when an entity's ``train`` or ``test`` is first asked for.

    Parameters
    ----------
    name : one of "smd", "msl", "smap", "swat", "psm", or the path of your own file or folder
        Your own: csv or parquet, wide (``timestamp``, channels, ``is_anomaly``) or long (``unique_id, ds, y``); see
        :mod:`tisat.datasets.user_files`.
    data : folder, optional
        The folder that holds the data set's folder (``ServerMachineDataset``, ``telemanom``, ``SWaT``, ``PSM``);
        ``TISAT_DATA`` or ``~/.cache/tisat`` where not given.
    entities : names, optional
        Machines or channels; all whose values are there where not given, and ``dataset.missing`` names the others. One
        asked for by name must be there.
    telemetry_only : bool, optional
        For MSL and SMAP: the telemetry value alone (the default, as in the paper), or with its command columns.
    version : "v0" or "v1", optional
        For SWaT: which normal log to train on; v1 (495,000 rows) where it is there, else v0 (496,800).
    strict : bool
        Refuse a file whose rows are not as many as published.
    train : float in (0, 1) or int >= 1, optional
        For your own files whose names do not tell: the share or number of rows at the start that are for training.

    Returns
    -------
    dataset : Dataset
        ``dataset.entities``, ``dataset["machine-1-2"]``, ``len(dataset)``, ``dataset.card``, ``dataset.missing``.

    Examples
    --------
    >>> load("smd")[0].train  # doctest: +SKIP
    """
    if name not in NAMES and (os.sep in str(name) or Path(name).exists()):
        return _choose(own_files.read_dataset(name, train=train), entities)
    card = read_card(check_choice(name, "name", "load", choices=NAMES))
    if train is not None:
        raise ParameterError.about(
            "train", f"must be None for {name!r}, whose publisher split it. Got {train!r} instead.", whose="load"
        )
    strict = check_flag(strict, "strict", "load")
    if telemetry_only is not None:
        check_flag(telemetry_only, "telemetry_only", "load")
        if name not in ("msl", "smap"):
            raise ParameterError(
                f"The 'telemetry_only' parameter of load must be None for {name!r}; only 'msl' and 'smap' have command "
                f"columns. Got {telemetry_only!r} instead."
            )
    if version is not None:
        check_choice(version, "version", "load", choices=swat.VERSIONS)
        if name != "swat":
            raise ParameterError(f"The 'version' parameter of load must be None for {name!r}. Got {version!r} instead.")
    telemetry_only = telemetry_only is not False and name in ("msl", "smap")
    return _choose(published(card, data, telemetry_only=telemetry_only, version=version, strict=strict), entities)
