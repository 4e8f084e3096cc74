"""Model files and monitor states that version 0.2 wrote are read, and give the alarms they gave."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from tisat import Monitor, Series, Watch

FOLDER = Path(__file__).parent / "v0.2"
NAMES = sorted(path.stem for path in FOLDER.glob("*.tisat"))


def rows(count, seed, *, fault):
    """The rows the files were made with, by the generator of numpy that 0.2 used."""
    noise = np.random.default_rng(seed).normal(size=(count, 3))
    values = np.sin(np.arange(count)[:, None] / 9.0 + np.arange(3)) + 0.1 * noise + [60.0, 5.0, 1.0]
    values[fault : fault + 30, 0] += 8
    return values


@pytest.mark.parametrize("name", NAMES)
def test_a_model_file_of_0_2_gives_the_alarms_it_gave(name):
    watch = Watch.load(FOLDER / f"{name}.tisat")
    assert watch.calibration.supported > 0
    assert watch.calibration.budget == "1/500 instants"
    series = Series(rows(400, 1, fault=200), channels=watch.channels, timestamps=54000 + np.arange(400) * 60.0)
    (alarm,) = watch.alarms(series)
    ((_, printed),) = json.loads((FOLDER / f"{name}.json").read_text())
    assert printed.startswith(f"alarm at {alarm.raised_time:g}, since {alarm.onset_time:g}")


@pytest.mark.parametrize("name", NAMES)
def test_a_monitor_state_of_0_2_continues(name):
    watch = Watch.load(FOLDER / f"{name}.tisat")
    monitor = Monitor.load(watch, lzma.decompress((FOLDER / f"{name}.state.xz").read_bytes()))
    assert monitor.alarm is not None  # the fault is under way at row 220
    results = [monitor.update(row, 54000 + 60.0 * (220 + k)) for k, row in enumerate(rows(400, 1, fault=200)[220:])]
    assert sum(result.cleared for result in results) == 1
    assert not any(result.raised for result in results)


def test_a_state_with_the_sorted_past_of_earlier_versions_continues():
    values = rows(3000, 2, fault=2600)
    watch = Watch("prism", budget="1/400 rows").fit(values[:1500])
    first, second = watch.monitor(), watch.monitor()
    first.extend(list(values[1500:2500]))
    state = first.state()
    evidence = state["run"]["evidence"]
    ends = np.cumsum(evidence["lengths"])
    table = np.zeros((len(ends), evidence["lengths"].max()))
    level = np.repeat(watch.rule.level_, evidence["lengths"])
    whole = level - 1.0  # what is not above the level was kept as it was
    whole[np.unpackbits(evidence.pop("above"), count=len(whole)).astype(bool)] = evidence.pop("past")
    for row, past in zip(table, np.split(whole, ends[:-1]), strict=True):
        row[: len(past)] = past
    third = watch.monitor()
    third.restore({**state, "run": {**state["run"], "evidence": {**evidence, "past": whole}}})
    del evidence["lengths"]
    second.restore({**state, "run": {**state["run"], "evidence": {**evidence, "past": table, "ordered": table * 0}}})
    for row in values[2500:]:
        assert first.update(row).statistic == second.update(row).statistic == third.update(row).statistic
