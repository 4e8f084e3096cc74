"""A fault that begins while an alarm is on is named by it, and what comes after an alarm did not begin before it ended."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tisat import Watch
from tisat.alarms.alarms import Alarm
from tisat.alarms.joined_channels import BACK, CLIMB, Climb
from tisat.datasets.synthetic import make_plant, make_pump
from tisat.watch import Monitor


def climbs(statistics, threshold):
    """From the definition: a climb of half the threshold within 20 rows, and 20 rows since the last look."""
    found, last = [], -1
    for row, now in enumerate(statistics):
        before = statistics[last + 1 : row]
        if len(before) >= BACK and now - min(before[-BACK:]) >= CLIMB * threshold:
            found.append(row)
            last = row
    return found


def test_a_climb_is_found_where_the_definition_says():
    rng = np.random.default_rng(0)
    for _ in range(50):
        statistics = np.abs(np.cumsum(rng.normal(size=300))).tolist()
        climb, threshold = Climb(), float(rng.uniform(1.0, 10.0))
        found = climbs(statistics, threshold)
        assert [climb.step(s, threshold=threshold) for s in statistics] == [row in found for row in range(300)]


@pytest.fixture(scope="module")
def two_faults():
    """A plant with a sensor stuck for four hours; two hours later the last channel jumps for half an hour."""
    plant = make_plant(n_train=6000, n_test=2400, n_faults=0, random_state=7)
    values = plant.test.values.copy()
    noise = np.diff(plant.train.values, axis=0).std(axis=0)
    values[1000:1240, 0] = values[1000, 0]
    values[1120:1150, 7] += 12.0 * noise[7]
    return plant.train, replace(plant.test, values=values)


@pytest.mark.parametrize("detector", ["prism", "mahalanobis", "linear-last"])
def test_a_second_fault_is_named_by_its_own_alarm_or_by_the_one_that_is_on(two_faults, detector):
    train, test = two_faults
    alarms = Watch(detector, budget="1/day").fit(train).alarms(test)
    said = [reason.channel for one in alarms if 1120 <= one.raised < 1180 for reason in one.reasons]
    said += [
        reason.channel for one in alarms for more in one.further if 1120 <= more.at < 1180 for reason in more.reasons
    ]
    assert test.channels[7] in said


def test_a_channel_that_an_alarm_mentions_last_joins_it_when_its_own_fault_begins():
    """A chance pattern of the valve raised 24 minutes before the vibration doubled; vibration had a seventh of the attribution."""
    pump = make_pump(valve=True)
    alarms = Watch("prism", budget="1/day").fit(pump.train).alarms(pump.test)
    doubled = 700  # 11:40
    said = {reason.channel for one in alarms if doubled <= one.raised < doubled + 60 for reason in one.reasons[:1]}
    said |= {
        r.channel for one in alarms for more in one.further if doubled <= more.at < doubled + 60 for r in more.reasons
    }
    assert "vibration" in said


@pytest.fixture(scope="module")
def overlapping():
    """A strong offset of one channel, and 30 rows later a weaker one of another."""
    plant = make_plant(n_train=6000, n_test=2400, n_faults=0, random_state=7)
    unit, values = plant.train.values.std(axis=0), plant.test.values.copy()
    values[1000:1060, 0] += 9.0 * unit[0]
    alone = replace(plant.test, values=values.copy())
    values[1030:1110, 2] += 6.0 * unit[2]
    return Watch("prism", budget="1/day").fit(plant.train), alone, replace(plant.test, values=values)


def test_a_weaker_fault_soon_after_a_stronger_one_is_named_as_it_begins(overlapping):
    watch, _, test = overlapping
    (alarm,) = [one for one in watch.alarms(test) if 1000 <= one.raised < 1110]
    assert alarm.reasons[0].channel == test.channels[0]
    assert next(more.at for more in alarm.further for why in more.reasons if why.channel == test.channels[2]) < 1035


def test_the_end_of_a_fault_names_no_other_channel(overlapping):
    watch, alone, _ = overlapping
    (alarm,) = [one for one in watch.alarms(alone) if 1000 <= one.raised < 1110]
    assert {why.channel for more in alarm.further for why in more.reasons} <= {alone.channels[0]}


def named(alarm):
    """What joined an alarm, up to rounding."""
    return [
        (more.at, more.kind, [(why.channel, round(why.share, 9)) for why in more.reasons]) for more in alarm.further
    ]


def test_what_joins_an_alarm_is_said_row_by_row_kept_in_a_snapshot_and_written(two_faults, tmp_path):
    train, test = two_faults
    watch = Watch("prism", budget="1/day").fit(train)
    offline = watch.alarms(test)
    assert any(one.further for one in offline)
    monitor, told, seen = Monitor(watch), [], []
    for row, stamp in zip(test.values, test.timestamps, strict=True):
        verdict = monitor.update(row, stamp)
        if verdict.alarm is not None:
            (seen if verdict.cleared else told).append(verdict.alarm)
        if verdict.alarm is not None and verdict.alarm.further:  # a restart while it is on
            monitor = Monitor.load(watch, monitor.to_bytes())
    assert [named(one) for one in seen] == [named(one) for one in offline if one.cleared is not None]
    assert len(told) == len(offline) + sum(len(one.further) for one in offline)
    one = next(one for one in offline if one.further)
    assert Alarm.from_json(one.to_json()) == one
    assert any(f"also {more.kind}: {test.channels[7]}" in str(each) for each in offline for more in each.further)
    offline.write(tmp_path / "alarms.csv")
    assert one.joined in (tmp_path / "alarms.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("detector", ["prism", "mahalanobis"])
def test_an_alarm_did_not_begin_before_the_last_one_ended(detector):
    plant = make_plant(random_state=11)
    alarms = Watch(detector, budget="6/day").fit(plant.train).alarms(plant.test)
    assert len(alarms) > 5
    for before, after in itertools.pairwise(alarms):
        assert before.cleared <= after.onset <= after.raised
