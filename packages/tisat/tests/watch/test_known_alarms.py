"""Alarms that a pattern knows."""

import numpy as np
import pytest

import tisat
from tisat.alarms.patterns import Pattern, propose_patterns
from tisat.watch.monitor import Monitor
from tisat.watch.row_blocks import leading


@pytest.fixture(scope="module")
def spiky():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 2))
    new = rng.normal(size=(3000, 2))
    new[np.arange(300, 3000, 400), 0] += 12.0
    return tisat.Watch("mahalanobis", budget="1/500 rows").fit(rows), new


def test_alarms_that_a_pattern_knows_are_not_called_a_new_pattern(spiky):
    watch, new = spiky
    before = watch.alarms(new)
    assert before.movement.alike > 2
    for proposal in propose_patterns(before.alarms, {alarm.raised: "expected" for alarm in before.alarms}):
        watch.adopt(proposal)
    after = watch.alarms(new)
    assert [alarm.raised for alarm in after] == [alarm.raised for alarm in before]
    assert sum(not alarm.known for alarm in after) >= after.movement.alike
    assert after.movement.alike < before.movement.alike


GROWTH = {"alike": [300], "longer": range(300, 600, 40), "stronger": range(300, 310)}


@pytest.mark.parametrize("growth", GROWTH)
def test_an_alarm_that_grows_beyond_the_labelled_ones_calls_then_offline_online_and_after_a_restart(spiky, growth):
    watch, new = spiky
    calm = new[:1000].copy()
    calm[[300, 700], 0] -= 12.0

    def faulty(rows):
        values = calm.copy()
        values[list(rows), 0] += 12.0 if growth == "stronger" and len(rows) > 1 else 6.0
        return values

    labelled = next(iter(watch.alarms(faulty([300]))))
    known = watch.at(watch.calibration)
    known.patterns = ()
    known.adopt(propose_patterns([labelled], {labelled.raised: "false"})[0])
    later = faulty(GROWTH[growth])
    offline = next(iter(known.alarms(later)))
    assert offline.raised == 300
    assert bool(offline.known) is (growth == "alike")
    if growth == "longer":
        assert offline.peak < known.patterns[0].strongest * offline.threshold, "only its length speaks against it"

    kept, straight = known.monitor(), known.monitor()
    results = [straight.update(row) for row in later]
    restarted = []
    for row in later:
        restarted.append(kept.update(row))
        if 295 <= kept.rows <= 480:
            kept = Monitor.load(known, kept.to_bytes())
    blocks = leading(known.monitor(), later.tolist(), [None] * len(later))
    told = [
        [one.alarm for one in each if one.alarm and one.alarm.raised == 300] for each in (results, restarted, blocks)
    ]
    assert told[0] == told[1]
    for one in told:
        assert [bool(alarm.known) for alarm in one] == ([True, True] if growth == "alike" else [True, False, False])
        assert (one[-1].cleared, one[-1].known) == (offline.cleared, offline.known)


def test_the_words_of_a_pattern_name_both_directions_where_it_has_both():
    examples = ((("flow", -1, 0.7), ("load", 1, 0.3)), (("flow", 1, 0.8), ("load", -1, 0.2)))
    assert (
        str(Pattern("broken correlation", "", "", None, examples))
        == "broken correlation: flow down or up, load up or down"
    )
    assert str(Pattern("spike", "", "", None, examples[:1])) == "spike: flow down, load up"
