"""A conversion is the same data set, mapped instead of parsed, and never believed when it is half or stale."""

from __future__ import annotations

import json
import mmap

import numpy as np
import pyarrow.parquet as parquet
import pytest

from tisat import Series
from tisat.errors import DataFileError
from tisat_bench import datasets


def is_mapped(array) -> bool:
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    return array is not None


def assert_same(first: Series, second: Series) -> None:
    np.testing.assert_array_equal(first.values, second.values)
    assert first.values.dtype == second.values.dtype
    assert first.channels == second.channels
    assert first.name == second.name
    np.testing.assert_array_equal(first.timestamps, second.timestamps)
    assert (first.labels is None) == (second.labels is None)
    if first.labels is not None:
        np.testing.assert_array_equal(first.labels, second.labels)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("smd", {}),
        ("msl", {"telemetry_only": True}),
        ("smap", {"telemetry_only": False}),
        ("psm", {}),
        ("swat", {"version": "v1"}),
    ],
)
def test_a_conversion_is_the_same_data_set(request, tmp_path, name, options):
    root = request.getfixturevalue({"msl": "telemanom", "smap": "telemanom"}.get(name, name))
    before = datasets.load(name, root, strict=False, **options)
    out = tmp_path / "out"
    datasets.convert(name, root, out, strict=False)
    after = datasets.load(name, out, **options)
    assert after.names == before.names
    assert after.missing == before.missing
    for entity in before:
        assert_same(entity.train, after[entity.name].train)
        assert_same(entity.test, after[entity.name].test)
        assert entity.interpretation == after[entity.name].interpretation


def test_values_are_mapped_not_read(smd):
    datasets.convert("smd", smd, strict=False)
    assert is_mapped(datasets.load("smd", smd)["machine-1-1"].train.values)


def test_labels_of_machines_without_values_survive(smd, tmp_path):
    labels = datasets.labels("smd", smd, strict=False)
    datasets.convert("smd", smd, tmp_path / "out", strict=False)
    after = datasets.labels("smd", tmp_path / "out")
    assert set(after) == set(labels)
    assert "machine-3-10" in after
    for machine in labels:
        np.testing.assert_array_equal(after[machine], labels[machine])


def test_the_parquet_files_are_for_every_tool(smd, tmp_path):
    folder = datasets.convert("smd", smd, tmp_path / "out", strict=False)
    series = Series.read(folder / "machine-1-1.test.parquet", name="machine-1-1")
    assert_same(series, datasets.load("smd", smd, strict=False)["machine-1-1"].test)
    names = parquet.read_schema(folder / "machine-1-1.test.parquet").names
    assert names[0] == "timestamp"
    assert names[-1] == "is_anomaly"


def test_a_conversion_that_broke_off_is_not_taken(smd):
    folder = datasets.convert("smd", smd, strict=False)
    (folder / "card.json").unlink()
    assert not is_mapped(datasets.load("smd", smd, strict=False)["machine-1-1"].train.values)


def test_a_stale_conversion_is_refused(smd):
    datasets.convert("smd", smd, strict=False)
    with (smd / "ServerMachineDataset" / "train" / "machine-1-1.txt").open("a") as file:
        file.write(",".join(["0.5"] * 38) + "\n")
    with pytest.raises(
        DataFileError, match=r"machine-1-1.txt' has changed since; run 'tisat data convert smd --overwrite'"
    ):
        datasets.load("smd", smd)


@pytest.mark.parametrize("damage", ["cut", "shape", "gone"])
def test_a_damaged_array_is_refused(smd, damage):
    folder = datasets.convert("smd", smd, strict=False)
    file = folder / "machine-1-1.train.npy"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-8])
    elif damage == "shape":
        np.save(file, np.zeros((3, 38)))
    else:
        file.unlink()
    with pytest.raises(DataFileError, match=r"machine-1-1.train.npy' must"):
        datasets.load("smd", smd)["machine-1-1"].train  # noqa: B018


def test_a_card_of_something_else_is_refused(smd):
    folder = datasets.convert("smd", smd, strict=False)
    document = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps(document | {"format": 99}))
    with pytest.raises(DataFileError, match=r"must describe 'smd' in format 1. Got 'smd', format 99"):
        datasets.load("smd", smd)
    (folder / "card.json").write_text("{")
    with pytest.raises(DataFileError, match=r"card.json' must be the JSON card of a conversion"):
        datasets.load("smd", smd)


def test_swat_asked_in_another_version_is_read_from_the_originals(swat):
    datasets.convert("swat", swat, strict=False)
    assert len(datasets.load("swat", swat, strict=False)["swat"].train) == 9
    assert len(datasets.load("swat", swat, version="v0", strict=False)["swat"].train) == 14
