"""Small data sets written by the tests in the exact layouts, quirks included, of their publishers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tisat_bench.datasets import card


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(4)


@pytest.fixture
def real_data() -> Path:
    root = os.environ.get("TISAT_DATA")
    if not root or not Path(root).is_dir():
        pytest.skip("TISAT_DATA does not name a folder with the real data sets")
    return Path(root)


@pytest.fixture
def smd(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Three machines, of which machine-3-10 has labels but no values."""
    folder = tmp_path / "ServerMachineDataset"
    for part in ("train", "test", "test_label", "interpretation_label"):
        (folder / part).mkdir(parents=True)
    for machine in ("machine-3-2", "machine-3-10", "machine-1-1"):
        if machine != "machine-3-10":
            for split, rows in (("train", 30), ("test", 20)):
                lines = [",".join(f"{x:.6f}" for x in row) for row in rng.random((rows, 38))]
                (folder / split / f"{machine}.txt").write_text("\n".join(lines) + "\n")
        (folder / "test_label" / f"{machine}.txt").write_text("0\n" * 5 + "1\n" * 4 + "0\n" * 11)
        (folder / "interpretation_label" / f"{machine}.txt").write_text("5-9:1,38\n")
    return tmp_path


TELEMANOM: list[tuple[str, str, list[list[int]], int]] = [
    ("P-1", "SMAP", [[2, 4], [9, 9]], 20),
    ("P-2", "SMAP", [[5, 8]], 15),
    ("C-1", "MSL", [[0, 3]], 12),
    ("P-2", "SMAP", [[3, 6]], 15),
]


@pytest.fixture
def telemanom(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Two SMAP channels, P-2 in two rows of the labels as published, one MSL channel, and T-10 without a label."""
    folder = tmp_path / "telemanom"
    lines = ["chan_id,spacecraft,anomaly_sequences,class,num_values"]
    lines += [f'{name},{craft},"{json.dumps(pairs)}",[point],{count}' for name, craft, pairs, count in TELEMANOM]
    for split in ("train", "test"):
        (folder / split).mkdir(parents=True)
        for name, craft, _, count in [*TELEMANOM, ("T-10", "MSL", [], 7)]:
            width = 25 if craft == "SMAP" else 55
            array = (rng.random((count, width)) < 0.5).astype(float)
            array[:, 0] = rng.uniform(-1, 1, count)
            np.save(folder / split / f"{name}.npy", array)
    (folder / "labeled_anomalies.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def psm(tmp_path: Path, rng: np.random.Generator) -> Path:
    """26 columns, the first of them minutes; train has empty cells."""
    folder = tmp_path / "PSM"
    folder.mkdir()
    header = ",".join(["timestamp_(min)", *(f"feature_{c}" for c in range(25))])
    for split, first, rows in (("train", 0, 12), ("test", 100, 10)):
        cells = [[repr(float(x)) for x in row] for row in rng.random((rows, 25))]
        if split == "train":
            cells[3] = [""] * 25  # as published: whole rows are empty but for the minute
            cells[7][2] = ""
        lines = [f"{first + t}.0,{','.join(row)}" for t, row in enumerate(cells)]
        (folder / f"{split}.csv").write_text("\n".join([header, *lines]) + "\n")
    labels = [f"{100 + t}.0,{int(t in (2, 3, 8))}" for t in range(10)]
    (folder / "test_label.csv").write_text("\n".join(["timestamp_(min),label", *labels]) + "\n")
    return tmp_path


def swat_table(rows: int, *, start: int, attacks: dict[int, str], rng: np.random.Generator) -> list[list[str]]:
    """The sheet as published: a title row, names and times with stray spaces, 'A ttack' among the labels."""
    names = card("swat").channel_names
    spaced = {"MV101", "AIT201", "MV201", "P201", "P202", "P204", "MV303"}
    title = ["", "P1", *[""] * (len(names) - 1), ""]
    header = [" Timestamp", *(f" {name}" if name in spaced else name for name in names), "Normal/Attack"]
    body = []
    for t in range(rows):
        hour, rest = divmod(start + t, 3600)
        half, hour = ("PM" if hour >= 12 else "AM"), (hour % 12 or 12)
        stamp = f" 28/12/2015 {hour}:{rest // 60:02d}:{rest % 60:02d} {half}"
        body.append([stamp, *(f"{x:.4f}" for x in rng.uniform(0, 900, len(names))), attacks.get(t, "Normal")])
    return [title, header, *body]


NOON = 12 * 3600
ATTACKS = {3: "Attack", 4: "A ttack", 5: " Attack", 9: "Attack "}


@pytest.fixture
def swat_sheets(rng: np.random.Generator) -> dict[str, list[list[str]]]:
    """Normal log v0 and v1 and the attack log; the attack log crosses noon."""
    return {
        "SWaT_Dataset_Normal_v0": swat_table(14, start=NOON - 100, attacks={}, rng=rng),
        "SWaT_Dataset_Normal_v1": swat_table(9, start=NOON - 95, attacks={}, rng=rng),
        "SWaT_Dataset_Attack_v0": swat_table(12, start=NOON - 4, attacks=ATTACKS, rng=rng),
    }


@pytest.fixture
def swat(tmp_path: Path, swat_sheets: dict[str, list[list[str]]]) -> Path:
    folder = tmp_path / "SWaT"
    folder.mkdir()
    for name, sheet in swat_sheets.items():
        (folder / f"{name}.csv").write_text("\n".join(",".join(row) for row in sheet) + "\n")
    return tmp_path
