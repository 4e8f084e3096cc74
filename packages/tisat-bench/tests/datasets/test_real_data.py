"""The real data sets: row, channel and event counts of the specification, section 6 and the table of section 3."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tisat.events import events_from_labels
from tisat_bench.datasets import card, labels, load, verify

pytestmark = pytest.mark.data

# Specification, section 3: T, events, anomalous percent of the test labels.
LABELS = {
    "smd": (708_420, 327, 4.16),
    "msl": (73_729, 36, 10.53),
    "smap": (435_826, 68, 12.84),
    "swat": (449_919, 35, 12.14),
    "psm": (87_841, 72, 27.76),
}
ENTITIES = {"smd": 28, "msl": 27, "smap": 54, "swat": 1, "psm": 1}


@pytest.mark.parametrize("name", LABELS)
def test_labels_have_the_counts_of_the_specification(real_data, name):
    if not (real_data / card(name).folder).is_dir():
        pytest.skip(f"no folder {card(name).folder}")
    found = labels(name, real_data)
    time_steps = sum(len(y) for y in found.values())
    events = sum(len(events_from_labels(y)) for y in found.values())
    anomalous = sum(int(y.sum()) for y in found.values())
    assert (time_steps, events, round(100 * anomalous / time_steps, 2)) == LABELS[name]
    assert len(found) == ENTITIES[name]


@pytest.mark.parametrize(("name", "channels", "train"), [("msl", 55, 58_317), ("smap", 25, 138_004)])
def test_telemetry_has_the_counts_of_the_specification(real_data, name, channels, train):
    if not (real_data / "telemanom").is_dir():
        pytest.skip("no folder telemanom")
    whole = load(name, real_data, telemetry_only=False)
    assert not whole.missing
    assert {entity.train.n_channels for entity in whole} == {channels}
    assert sum(len(entity.train) for entity in whole) == train
    assert sum(len(entity.test) for entity in whole) == LABELS[name][0]
    paper = load(name, real_data)
    assert {entity.test.n_channels for entity in paper} == {1}
    assert "T-10" not in whole


def test_smap_without_p2_has_the_rows_other_papers_print(real_data):
    if not (real_data / "telemanom").is_dir():
        pytest.skip("no folder telemanom")
    found = labels("smap", real_data)
    assert sum(len(y) for name, y in found.items() if name != "P-2") == 427_617
    assert events_from_labels(found["P-2"]).tolist() == [[5300, 6576]]


def test_every_machine_that_is_there_loads_whole(real_data):
    if not (real_data / "ServerMachineDataset").is_dir():
        pytest.skip("no folder ServerMachineDataset")
    found = load("smd", real_data)
    assert len(found) + len(found.missing) == 28
    for entity in found:
        assert entity.train.n_channels == entity.test.n_channels == 38
        assert (len(entity.train), len(entity.test)) == card("smd").rows[entity.name]
        assert entity.train.missing == entity.test.missing == 0


def test_smd_attribution_is_the_labels_but_for_the_known_problems(real_data):
    """The differences are those the card lists, and no others."""
    folder = real_data / "ServerMachineDataset"
    if not folder.is_dir():
        pytest.skip("no folder ServerMachineDataset")
    from tisat_bench.datasets.smd import read_interpretation

    different = {}
    for machine, y in labels("smd", real_data).items():
        contributing = {attribution.event for attribution in read_interpretation(folder, card("smd"), machine)}
        labelled = {tuple(event) for event in events_from_labels(y).tolist()}
        if contributing != labelled:
            different[machine] = (sorted(contributing - labelled), sorted(labelled - contributing))
    assert different == {
        "machine-1-1": ([(15849, 16368)], [(15849, 16395)]),
        "machine-1-3": ([(22923, 23019)], [(18460, 18471), (22923, 23020)]),
        "machine-2-3": ([(7910, 8010)], [(7910, 8001)]),
        "machine-3-2": ([], [(12139, 12143)]),
        "machine-3-3": ([(4564, 4567), (19459, 19462)], []),
    }


def test_smd_was_scaled_over_both_splits_as_the_card_says(real_data):
    if not (real_data / "ServerMachineDataset").is_dir():
        pytest.skip("no folder ServerMachineDataset")
    for entity in load("smd", real_data):
        both = np.vstack([entity.train.values, entity.test.values])
        low, high = both.min(axis=0), both.max(axis=0)
        varies = high > low
        assert (low[varies] == 0).all()
        assert (high[varies] == 1).all()


@pytest.mark.parametrize("name", ["msl", "smap"])
def test_telemetry_verifies_against_its_card(real_data, name):
    if not (real_data / "telemanom").is_dir():
        pytest.skip("no folder telemanom")
    result = verify(name, real_data)
    assert result.findings == ()
    assert result.complete


def test_what_differs_of_smd_is_only_what_is_absent(real_data):
    if not (real_data / "ServerMachineDataset").is_dir():
        pytest.skip("no folder ServerMachineDataset")
    result = verify("smd", real_data)
    assert {finding.problem for finding in result.findings} <= {"missing"}
    assert result.events == 327


def test_the_published_sample_of_psm_has_the_layout_we_read(real_data, tmp_path):
    """Sample rows, and the labels of exactly those minutes, laid out as a small PSM."""
    folder = real_data / "PSM"
    if not (folder / "train_sample.csv").is_file():
        pytest.skip("no sample of PSM")
    target = tmp_path / "PSM"
    target.mkdir()
    for split in ("train", "test"):
        (target / f"{split}.csv").write_bytes((folder / f"{split}_sample.csv").read_bytes())
    with (target / "test.csv").open() as file:
        minutes = {row["timestamp_(min)"] for row in csv.DictReader(file)}
    lines = (folder / "test_label.csv").read_text().splitlines()
    (target / "test_label.csv").write_text(
        "\n".join([lines[0], *(x for x in lines[1:] if x.partition(",")[0] in minutes)]) + "\n"
    )
    entity = load("psm", tmp_path, strict=False)["psm"]
    assert entity.train.values.shape == (399, 25)
    assert entity.test.values.shape == (300, 25)
    assert entity.test.gaps.size == 1  # the sample is two pieces
    assert np.isfinite(entity.train.values).all()
