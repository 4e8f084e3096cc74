"""A watch whose threshold follows the alarms: the same offline, online, in a fleet and after a restart; and old files stay as they were."""

import json

import numpy as np
import pytest

from tisat.detectors import make
from tisat.persistence.model_file import read_artefact, write_artefact
from tisat.watch import Monitor, Watch
from waves import assert_same_verdicts, quietly, wave

FAULTS = range(150, 1400, 120)


@pytest.fixture(scope="module")
def watch():
    return quietly(Watch(make("last-value"), budget="1/500 rows").fit, wave(3000, seed=1))


@pytest.fixture(scope="module")
def rows():
    rows = wave(1500, seed=7)
    for start in FAULTS:
        rows[start : start + 3] += 1.5
    return rows


def test_offline_online_in_pieces_and_after_a_restart_alike(watch, rows):
    offline = watch.alarms(rows)
    monitor = watch.monitor()
    verdicts = [monitor.update(row) for row in rows[:700]]
    monitor = Monitor.load(watch, monitor.to_bytes())
    verdicts += monitor.extend(rows[700:])
    np.testing.assert_array_equal([verdict.active for verdict in verdicts], offline.active)
    np.testing.assert_array_equal([verdict.threshold for verdict in verdicts], offline.thresholds)
    assert [one.alarm.threshold for one in verdicts if one.raised] == [one.threshold for one in offline]
    fleet = watch.fleet(["a", "b"])
    told = fleet.judge([(name, row, None) for row in rows for name in ("a", "b")])
    assert_same_verdicts([one.statistic for one in told[::2]], [one.statistic for one in verdicts])
    np.testing.assert_array_equal([one.threshold for one in told[1::2]], offline.thresholds)
    assert offline.thresholds.max() > watch.calibration.threshold
    assert monitor.movement.alarms == offline.movement.alarms
    assert str(monitor.movement) in str(offline)


def test_it_raises_fewer_alarms_than_a_threshold_that_stays(watch, rows):
    stays = quietly(watch.recalibrated, control=False)
    assert not stays.calibration.controlled
    assert stays.alarms(rows).movement is None
    assert set(stays.alarms(rows).thresholds.tolist()) == {stays.calibration.threshold}
    assert len(watch.alarms(rows)) < len(stays.alarms(rows))


def test_true_alarms_do_not_raise_the_threshold(watch, rows):
    def highest(word, *, late):
        monitor, found = watch.monitor(), []
        for row in rows:
            verdict = monitor.update(row)
            found.append(verdict.threshold)
            if word and ((verdict.cleared and late) or (verdict.raised and not late)):
                monitor.label(verdict.alarm.raised, word)
        return max(found)

    assert highest("", late=True) > watch.calibration.threshold
    assert highest("false", late=True) == highest("", late=True)
    for late in (False, True):
        assert highest("true", late=late) <= watch.calibration.threshold
        assert highest("expected", late=late) <= watch.calibration.threshold


def test_a_label_taken_back_counts_again(watch, rows):
    monitor = watch.monitor()
    alarm = next(verdict.alarm for verdict in map(monitor.update, rows) if verdict.cleared)
    before = monitor.movement.alarms
    for word, counted in (("true", before - 1), ("expected", before - 1), ("false", before), ("false", before)):
        monitor.label(alarm.raised, word)
        assert monitor.movement.alarms == counted


def test_it_is_kept_in_the_file_and_a_file_without_it_keeps_its_threshold(watch, rows, tmp_path):
    watch.save(tmp_path / "new.tisat")
    loaded = Watch.load(tmp_path / "new.tisat")
    assert loaded.control
    np.testing.assert_array_equal(loaded.alarms(rows).thresholds, watch.alarms(rows).thresholds)
    document, tensors = read_artefact(tmp_path / "new.tisat")
    document = json.loads(json.dumps(document))
    del (
        document["watch"]["control"],
        document["watch"]["calibration"]["controlled"],
        document["watch"]["calibration"]["calm"],
    )
    for name in ("momentary_window", "gate"):
        del document["watch"]["options"][name]
    write_artefact(tmp_path / "old.tisat", document, tensors)
    old = Watch.load(tmp_path / "old.tisat")
    assert (old.control, old.calibration.control, old.rule.gate) == (False, None, 0.0)
    assert set(old.alarms(rows).thresholds.tolist()) == {watch.calibration.threshold}


def test_a_state_from_before_it_was_controlled_goes_on(watch, rows):
    stays = watch.at(quietly(watch.recalibrated, control=False).calibration)
    monitor = stays.monitor()
    monitor.extend(rows[:500])
    controlled = Monitor.load(watch, monitor.to_bytes())
    assert controlled.movement.alarms == 0
    controlled.extend(rows[500:])
    assert Monitor.load(stays, controlled.to_bytes()).movement is None


def test_an_alarm_of_a_held_statistic_is_explained_by_the_rows_that_made_it():
    def noise(seed, rows, *, faults):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(rows, 2))
        for start in range(200, rows, 150) if faults else ():
            values[start : start + int(rng.integers(1, 3)), rng.integers(2)] += rng.uniform(2, 7)
        return values

    watch = quietly(Watch(make("last-value"), budget="1/100 rows").fit, noise(1, 3000, faults=False))
    values = noise(3, 2400, faults=True)
    offline = watch.alarms(values)
    statistic = offline.statistic
    held = [one for one in offline if statistic[one.raised] <= statistic[one.raised - 1]]
    assert held  # the threshold came down to them
    for one in offline:
        assert offline.evidence[one.onset + 1 : one.raised + 1].sum() > 0.0

    def told(alarms):
        return [(one.raised, one.onset, one.why, {name: round(part, 9) for name, part in one.channels.items()}) for one in alarms]  # fmt: skip

    monitor, single = watch.monitor(), []
    for t, row in enumerate(values):
        if t % 13 == 0:
            monitor = Monitor.load(watch, monitor.to_bytes())
        single.append(monitor.update(row))
    monitor = watch.monitor()
    blocks = [one for block in np.array_split(values, 17) for one in monitor.extend(block)]
    for results in (single, blocks):
        assert told(one.alarm for one in results if one.raised) == told(offline)
