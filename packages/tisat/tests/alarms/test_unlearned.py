"""Rows that are scored and teach the rule nothing: row by row and at once the same, and as if they had never been."""

import numpy as np
import pytest

from tisat.alarms.rules import RULES, Scored, make_rule
from tisat.watch import Monitor, Watch


@pytest.fixture
def scored():
    rng = np.random.default_rng(3)
    return Scored.of(rng.exponential(size=(900, 2)))


@pytest.mark.parametrize("name", sorted(RULES))
def test_at_once_and_row_by_row(name, scored):
    rule = make_rule(name).fit(Scored.of(np.random.default_rng(0).exponential(size=(2000, 2))))
    learn = np.ones(900, dtype=bool)
    learn[200:350] = learn[600:610] = learn[899] = False
    evidence, trace = rule.start(threshold=2.0).run(scored, learn=learn)
    run = rule.start(threshold=2.0)
    each = [run.step(scored.rows(slice(t, t + 1)), learn=bool(learn[t])) for t in range(900)]
    assert [one[1] for one in each] == trace.statistic.tolist()
    assert [one[2] for one in each] == trace.active.tolist()
    total = evidence if evidence.ndim == 1 else evidence.sum(axis=1)
    np.testing.assert_array_equal([one[0] for one in each], total)


@pytest.mark.parametrize("name", sorted(RULES))
def test_the_rule_knows_afterwards_what_it_knew_before(name, scored):
    rule = make_rule(name).fit(Scored.of(np.random.default_rng(0).exponential(size=(2000, 2))))
    with_window, without = rule.start(threshold=2.0), rule.start(threshold=2.0)
    learn = np.ones(900, dtype=bool)
    learn[300:400] = False
    with_window.run(scored, learn=learn)
    without.run(scored.rows(learn))
    for key, array in without.state()["evidence"].items():
        np.testing.assert_array_equal(with_window.state()["evidence"][key], array)


def test_a_monitor_goes_on_from_the_middle_of_a_window():
    rng = np.random.default_rng(1)
    watch = Watch("last-value", budget="1/100 rows").fit(rng.normal(size=(2000, 2)))
    rows = rng.normal(size=(600, 2))
    rows[250:300] += 9.0

    def judged(cut):
        monitor = watch.monitor(name="m")
        found = []
        for t, row in enumerate(rows):
            if t == cut:
                monitor = Monitor.load(watch, monitor.to_bytes())
            found.append(monitor.update(row, learn=not 240 <= t < 310).to_json())
        return found

    whole = judged(None)
    assert judged(270) == whole
    fleet = watch.fleet(["m"])
    together = fleet.judge([("m", row, None, not 240 <= t < 310) for t, row in enumerate(rows)])
    assert [one.to_json() for one in together] == whole
