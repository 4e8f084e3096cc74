"""A data set rewritten for quick loading: parquet for every tool, a memory-mapped array for us, and a JSON card.

For each entity and split, ``<entity>.<split>.parquet`` holds ``timestamp``, the channels and (test) ``is_anomaly``;
``<entity>.<split>.npy`` holds the same values as one row-major array that is mapped, not read. ``card.json`` is written
last, so a conversion that broke off is never taken for a whole one. This module does not know the published layouts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tisat import __version__
from tisat.errors import DataFileError
from tisat.events import events_from_labels, labels_from_events
from tisat.io.compression import open_numpy, problem
from tisat.io.tables import parquet_batches
from tisat.series import Series
from tisat.utils.progress import progress
from tisat.utils.types import AnyFloats, Flags, JsonDict, JsonMap
from tisat_bench.datasets.base import Attribution, Dataset, entities_of
from tisat_bench.datasets.cards import Card
from tisat_bench.datasets.rows import series_of

FORMAT = 1  # raised when an older reader could misread the folder
FOLDER = "converted"  # under the data root
CARD = "card.json"
TIME, LABEL = "timestamp", "is_anomaly"


def converted_folder(root: Path, name: str) -> Path:
    """Where the conversion of a data set lies under a data root."""
    return root / FOLDER / name


def is_converted(root: Path, name: str) -> bool:
    """Whether there is a finished conversion."""
    return (converted_folder(root, name) / CARD).is_file()


def _replace(file: Path, write: Any) -> None:
    """Write beside the file, then put it in its place in one step."""
    partial_file = file.with_name(f".{file.name}.part")
    write(partial_file)
    os.replace(partial_file, file)


def _write_series(folder: Path, series: Series, split: str) -> JsonDict:
    """The two files of one split, and what the card says of them."""
    import pyarrow as pa
    from pyarrow import parquet

    columns: JsonDict = {TIME: pa.array(series.timestamps)}
    columns |= {name: pa.array(np.ascontiguousarray(series.values[:, c])) for c, name in enumerate(series.channels)}
    if series.labels is not None:
        columns[LABEL] = pa.array(series.labels)
    file = folder / f"{series.name}.{split}.parquet"
    _replace(file, lambda target: parquet.write_table(pa.table(columns), target, compression="zstd"))

    def write_array(target: Path) -> None:
        with target.open("wb") as opened:
            np.save(opened, np.ascontiguousarray(series.values), allow_pickle=False)

    _replace(file.with_suffix(".npy"), write_array)
    return {"rows": len(series), "bytes": file.stat().st_size}


def write_converted(
    dataset: Dataset,
    root: Path,
    *,
    labels: Mapping[str, Flags],
    originals: Mapping[str, int],
    version: str | None = None,
) -> Path:
    """Write a data set under ``root``; entity by entity, so that one is in memory at a time.

    Parameters
    ----------
    dataset : Dataset
        With all channels.
    root : folder
    labels : dict of entity to labels
        Of all entities, with or without values.
    originals : dict of path under the data set's folder to bytes
        So that a later load notices when they change.
    version : str, optional
        Which variant of the originals it was made from.
    """
    folder = converted_folder(root, dataset.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CARD).unlink(missing_ok=True)
    entities: JsonDict = {}
    channels: tuple[str, ...] = ()
    with progress(f"converting {dataset.name}", total=len(dataset)) as bar:
        for entity in dataset:
            channels = entity.train.channels
            entities[entity.name] = {
                "train": _write_series(folder, entity.train, "train"),
                "test": _write_series(folder, entity.test, "test"),
                "interpretation": [
                    [*attribution.event, list(attribution.channels)] for attribution in entity.interpretation
                ],
            }
            bar.advance(note=entity.name)
    document = {
        "format": FORMAT,
        "tisat": __version__,
        "name": dataset.name,
        "version": version,
        "channels": list(channels),
        "entities": entities,
        "missing": list(dataset.missing),
        "labels": {
            name: {"length": len(y), "events": events_from_labels(y).tolist()} for name, y in sorted(labels.items())
        },
        "originals": dict(originals),
        "card": dataset.card.to_json(),
    }
    _replace(folder / CARD, lambda target: target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8"))
    return folder


def read_document(root: Path, card: Card) -> JsonDict:
    """``card.json``, checked: ours, of this data set, and not older than the originals beside it."""
    file = converted_folder(root, card.name) / CARD
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise problem(file, "be the JSON card of a conversion", f"{str(error)[:120]!r}") from None
    if not isinstance(document, dict) or document.get("name") != card.name or document.get("format") != FORMAT:
        got = f"{document.get('name')!r}, format {document.get('format')!r}" if isinstance(document, dict) else "a list"
        raise problem(file, f"describe {card.name!r} in format {FORMAT}", got)
    for path, size in document["originals"].items():
        original = root / card.folder / path
        if original.is_file() and original.stat().st_size != size:
            raise DataFileError(
                f"The conversion {str(file.parent)!r} must be made from the files beside it. {str(original)!r} has changed "
                f"since; run 'tisat data convert {card.name} --overwrite', or delete the conversion."
            )
    return document


def _values(folder: Path, entity: str, split: str, shape: tuple[int, int]) -> AnyFloats:
    file = folder / f"{entity}.{split}.npy"
    with open_numpy(file, "be a whole .npy array", mode="r") as values:
        if values.shape != shape:
            raise problem(file, f"hold an array of shape {shape}", f"shape {values.shape}")
        return np.asarray(values)


def _series(folder: Path, document: JsonMap, only: int | None, entity: str, split: str) -> Series:
    import pyarrow as pa

    channels = tuple(document["channels"])
    values = _values(folder, entity, split, (document["entities"][entity][split]["rows"], len(channels)))
    if only is not None:
        values, channels = np.array(values[:, :only]), channels[:only]
    labels = document["labels"][entity] if split == "test" else None
    file = folder / f"{entity}.{split}.parquet"
    batches = list(parquet_batches(file, columns=[TIME]))
    times = pa.chunked_array([batch.column(0) for batch in batches]).to_numpy()
    return series_of(
        file,
        values,
        timestamps=times,
        channels=channels,
        labels=None if labels is None else labels_from_events(labels["events"], length=labels["length"]),
        name=entity,
    )


def _attributions(entries: list[Any]) -> tuple[Attribution, ...]:
    return tuple(Attribution((start, stop), tuple(channels)) for start, stop, channels in entries)


def labels(root: Path, card: Card) -> dict[str, Flags]:
    """The test labels of every entity, from the card alone."""
    found = read_document(root, card)["labels"]
    order = [*(name for name in card.rows if name in found), *(name for name in found if name not in card.rows)]
    return {name: labels_from_events(found[name]["events"], length=found[name]["length"]) for name in order}


def dataset(root: Path, card: Card, document: JsonMap, *, only: int | None) -> Dataset:
    """The converted data set; ``only`` keeps that many channels from the left."""
    names = document["entities"]
    attribution = {name: partial(_attributions, parts["interpretation"]) for name, parts in names.items()}
    entities = entities_of(card, names, partial(_series, converted_folder(root, card.name), document, only))
    return Dataset(
        card=card,
        entities=tuple(replace(one, read_interpretation=attribution[one.name]) for one in entities),
        missing=tuple(document["missing"]),
    )
