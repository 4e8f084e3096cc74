"""Labels propose patterns; what a pattern matches is known, not dropped; what it would hide is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tisat.alarms.alarms import Alarm
from tisat.alarms.explanation import Reason
from tisat.alarms.joined_channels import Further
from tisat.alarms.patterns import Fingerprint, Pattern, demoted, known_by, propose_patterns, share_similarity
from tisat.detectors.prism.detector import Prism
from tisat.errors import ArtefactError
from tisat.watch.monitor import Monitor
from tisat.watch.watch import Watch


def alarm(
    raised: int, time: str, *channels: tuple[str, float, float], kind: str = "spike", mode: str = "pump down"
) -> Alarm:
    reasons = tuple(Reason(name, share, 5.0 + way, 5.0, 1.0) for name, share, way in channels)
    return Alarm(
        raised, raised, raised + 9, 3.0, 2.0, "excess", "1/day", {}, time, reasons=reasons, kind=kind, mode=mode
    )


STOPS = [
    alarm(10, "2026-03-02T02:00:00", ("flow", 0.6, -1), ("power", 0.3, -1)),
    alarm(20, "2026-03-03T02:05:00", ("flow", 0.5, -1), ("power", 0.4, -1)),
    alarm(30, "2026-03-04T01:50:00", ("power", 0.5, -1), ("flow", 0.4, -1)),
]
NEXT = alarm(40, "2026-03-05T02:10:00", ("flow", 0.5, -1), ("power", 0.2, -1))
LABELS = dict.fromkeys((10, 20, 30), "false")


def test_alarms_that_are_alike_make_one_pattern_with_their_time():
    (proposal,) = propose_patterns([*STOPS, NEXT], LABELS)
    assert (
        str(proposal.pattern)
        == "spike at about 02:00, not on Sundays: flow down, power down, up to 2.6 x h and 23 rows "
        "(labelled on a working day after pump down)"
    )
    assert (proposal.labelled, proposal.avoided, proposal.hidden, proposal.unlabelled) == (3, 3, 0, 1)
    assert "avoided 3 false or expected alarms. It would have hidden 0 true alarms" in proposal.words
    assert proposal.pattern.matches(NEXT)


@pytest.mark.parametrize(
    "other",
    [
        alarm(1, "2026-03-05T02:10:00", ("flow", 0.5, 1), ("power", 0.2, 1)),  # the other direction
        alarm(1, "2026-03-05T02:10:00", ("bearing", 0.9, -1)),  # another channel
        alarm(1, "2026-03-05T14:10:00", ("flow", 0.5, -1)),  # another time of the day
        alarm(1, "2026-03-08T02:10:00", ("flow", 0.5, -1)),  # a Sunday
        alarm(1, "2026-03-05T02:10:00", ("flow", 0.5, -1), kind="stuck"),
        alarm(1, "2026-03-05T02:10:00", ("flow", 0.5, -1), mode="pump up"),
        replace(NEXT, peak=3.0 * NEXT.threshold),  # the labelled ones had 1.5 times it
        replace(NEXT, cleared=NEXT.raised + 30),  # they lasted 9 rows
    ],
    ids=["sign", "channel", "hour", "day", "kind", "mode", "strength", "length"],
)
def test_what_differs_is_not_of_the_pattern(other):
    (proposal,) = propose_patterns(STOPS, LABELS)
    assert not proposal.pattern.matches(other)


def test_a_proposal_says_what_it_would_have_hidden():
    (proposal,) = propose_patterns([*STOPS, NEXT], {**LABELS, 40: "true"})
    assert (proposal.hidden, proposal.safe) == (1, False)
    assert "hidden 1 true alarm" in proposal.words


def test_true_alarms_and_new_normals_propose_nothing():
    assert propose_patterns(STOPS, {10: "true", 20: "new normal"}) == ()


def test_a_known_alarm_is_marked_and_not_known_where_more_becomes_of_it():
    (proposal,) = propose_patterns(STOPS, LABELS)
    known = demoted(NEXT, [proposal.pattern])
    assert known.known == str(proposal.pattern)
    assert "known (spike" in str(known)
    assert known_by(replace(NEXT, further=(Further(41, None, "spike", NEXT.reasons),)), [proposal.pattern]) == ""
    assert known_by(replace(NEXT, state="ongoing", ongoing_since=49), [proposal.pattern]) == ""


def test_a_pattern_survives_json_and_what_is_none_is_refused():
    (proposal,) = propose_patterns(STOPS, LABELS)
    document = proposal.pattern.to_json()
    assert Pattern.from_json(document) == proposal.pattern
    earlier = {name: value for name, value in document.items() if name not in ("strongest", "longest")}
    assert Pattern.from_json(earlier).strongest is None, "a pattern of an earlier version has no limits"
    for broken in (
        {},
        {**document, "longest": -1},
        {**document, "strongest": "much"},
        {**document, "minute": 5000},
        {**document, "examples": [[["flow", 3, 0.5]]]},
        {**document, "kind": 1},
        None,
    ):
        with pytest.raises(ArtefactError, match="A pattern must have"):
            Pattern.from_json(broken)


def test_without_a_clock_a_fingerprint_has_no_time():
    found = Fingerprint.of(replace(NEXT, raised_time=None))
    assert (found.minute, found.day) == (None, "")


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    load = np.sin(np.arange(rows) / 40.0)
    return np.outer(load, [1.0, 1.5, 0.7]) + 0.1 * rng.standard_normal((rows, 3))


def test_a_pattern_taken_is_kept_with_the_model_and_offline_is_online_is_after_a_restart(monkeypatch, tmp_path):
    monkeypatch.setattr(Prism, "switches", property(lambda self: ((0, 4.0),)))
    watch = Watch(budget="1/1000 rows", control=False).fit(plant(5000, 1))
    rows = plant(3000, 2)
    for begin in (600, 1400, 2200):
        rows[begin : begin + 4, 0] += 9.0
    found = watch.alarms(rows)
    first = next(one for one in found if 600 <= one.raised < 610)
    assert first.mode == "0 up"
    for proposal in propose_patterns(found.alarms, {first.raised: "expected"}):
        watch.adopt(proposal)
    watch.save(tmp_path / "m.tisat")
    again = Watch.load(tmp_path / "m.tisat")
    assert again.patterns == watch.patterns != ()
    offline = again.alarms(rows)
    assert len(offline) == len(found)  # nothing is dropped
    spikes = [one for one in offline if one.raised % 800 in range(600, 610)]
    assert len(spikes) == 3
    assert all(one.known for one in spikes)
    assert not set(spikes_raised := [one.raised for one in spikes]) & {one.raised for one in offline.calling}, (
        spikes_raised
    )
    monitor, ends = again.monitor(), {}
    for t, row in enumerate(rows):
        result = monitor.update(row)
        for one in [*([result.alarm] if result.alarm else []), *result.ended]:
            ends[one.raised] = (one.mode, one.known, one.state)
        if t in (601, 1402, 1450):
            monitor = Monitor.load(again, monitor.to_bytes())
    assert ends == {one.raised: (one.mode, one.known, one.state) for one in offline}


def test_a_fault_led_by_a_channel_that_hardly_spoke_before_is_not_known():
    shares = [("vibration", 0.3, 1), ("flow", 0.3, 1), ("current", 0.15, 1)]
    (proposal,) = propose_patterns([alarm(10, "2026-03-02T02:00:00", *shares)], {10: "false"})
    led = alarm(1, "2026-03-05T02:10:00", ("current", 0.6, 1), ("vibration", 0.2, 1), ("flow", 0.2, 1))
    assert share_similarity(Fingerprint.of(led).channels, proposal.pattern.examples[0]) > 0.6
    assert not proposal.pattern.matches(led)


def test_after_another_switch_or_on_a_saturday_it_must_look_more_alike():
    (proposal,) = propose_patterns(STOPS, LABELS)
    alike, less = (("flow", 0.5, -1), ("power", 0.3, -1)), (("flow", 0.5, -1), ("bearing", 0.6, -1))
    for time, mode in (("2026-03-07T02:10:00", "pump down"), ("2026-03-05T02:10:00", "valve up")):
        assert proposal.pattern.matches(alarm(1, time, *alike, mode=mode))
        assert not proposal.pattern.matches(alarm(1, time, *less, mode=mode))


def test_one_alarm_on_another_sort_of_day_has_the_time_of_its_kind():
    """Alone on its Saturday it must not make a pattern of any hour: a fault at 14:00 would be known by it."""
    days = [f"2026-06-{day:02d}T06:05:00" for day in (1, 2, 3, 6)]  # three working days and a Saturday
    alarms = [alarm(10 * i, day, ("current", 0.9, 1), mode="") for i, day in enumerate(days)]
    proposals = propose_patterns(alarms, dict.fromkeys(range(0, 40, 10), "false"))
    assert {one.pattern.day for one in proposals} == {"working day", "Saturday"}
    fault = alarm(99, "2026-06-04T14:05:00", ("current", 0.9, 1), mode="")
    assert not any(one.pattern.matches(fault) for one in proposals)
    same = alarm(99, "2026-06-04T06:20:00", ("current", 0.9, 1), mode="")
    assert any(one.pattern.matches(same) for one in proposals)


def test_an_alarm_that_became_more_is_not_avoided():
    grown = replace(STOPS[0], ongoing_since=STOPS[0].raised + 5)
    (proposal,) = propose_patterns([grown, *STOPS[1:]], LABELS)
    assert (proposal.labelled, proposal.avoided) == (3, 2)


def test_a_pattern_that_avoids_nothing_is_not_proposed():
    grown = [replace(one, ongoing_since=one.raised + 5) for one in STOPS]
    assert propose_patterns(grown, LABELS) == ()


def test_one_channel_of_a_labelled_alarm_of_three_is_another_fault():
    """A sensor that was really stuck was known by an alarm in which three had not moved."""
    both = (("outside", 0, 0.45), ("steam", 0, 0.3), ("flow", 0, 0.25))
    pattern = Pattern("stuck", "", "", None, (both,))
    alone, most = (("outside", 0, 1.0),), (("outside", 0, 0.6), ("flow", 0, 0.4))
    assert not pattern.matches(alarm_of(alone))
    assert pattern.matches(alarm_of(most))


def alarm_of(shares):
    reasons = tuple(Reason(name, share, 1.0, 1.0, 0.1) for name, _, share in shares)
    return Alarm(10, 9, 20, 2.0, 1.0, "excess", "1/day", {}, kind="stuck", reasons=reasons)
