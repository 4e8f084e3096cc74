"""The invariants of every stage between a row and an alarm, over one list of them: batch, row by row, and restarts agree."""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tisat.alarms.alarms import Alarm
from tisat.alarms.control import Control
from tisat.alarms.cusum import POLICIES, CompressedSum, Cusum, WindowSum
from tisat.alarms.episode_log import EpisodeRecord
from tisat.alarms.explanation import Reason
from tisat.alarms.joined_channels import Climb
from tisat.alarms.ongoing import Ongoing
from tisat.alarms.rules import RULES, Scored, make_rule
from tisat.alarms.rules.base import Aggregation
from tisat.alarms.sentences import RecentRows, Stillness
from tisat.alarms.suppression import Suppression, Suppressor
from tisat.detectors import make
from tisat.gap_filling import CarryForward, carry_forward
from tisat.io.counters import Growth
from tisat.io.timestamps import read_time
from tisat.series import Series
from tisat.utils.stage import join_state, split_state
from tisat.watch.alarm_tracker import Course, Judged, Taken
from tisat.watch.clock import RowClock
from tisat.watch.liveness import Heard, RollCall
from tisat.watch.row_intake import RowIntake
from tisat.watch.watch import Watch

VIEWS = 2


@dataclass(frozen=True)
class Case:
    """A stage and how drawn rows are given to it."""

    make: Callable[[], Any]  # a fresh stage
    row: Callable[[int, list[float]], Any]  # its row of number and values; NaN is a hole
    batch: Callable[[list[Any]], Any] = list  # rows as its run takes them
    results: Callable[[Any], list[Any]] = list  # one result per row of what its run returns
    result: Callable[[Any], Any] = lambda found: found  # what its step returns, in the same form


def scored(values):
    return Scored(
        np.sqrt(np.abs([values]))[:, :2], np.abs([values[0]]), np.abs([[values[0], values[0] * 0.3]]), momentary=(1,)
    )


def joined(rows):
    return Scored(*(np.concatenate(parts) for parts in list(zip(*rows, strict=True))[:3]), momentary=(1,))


def normal():
    rng = np.random.default_rng(0)
    column = rng.exponential(size=400)
    return Scored.of(np.sqrt(column)[:, None] * [1.0, 0.5], column, np.stack([column, column * 0.3], axis=1), (1,))


def fitted_rule(name):
    small = {"window": 40, "warm": 30, "lasting": 12, "lag": 3} if name == "excess" else {}
    return make_rule(name, **small).fit(normal())


def controlled(accumulator):
    accumulator.follow(Control(period=20.0, level=2.0, lowest=0.5, compression=None))
    return accumulator


def alarm_of(number, values):
    reason = Reason("flow", 1.0, values[0], 0.0, 1.0)
    return Alarm(number, number, None, 1.0, 1.0, "excess", "1/day", {"flow": 1.0}, reasons=(reason,))


def followed():
    ongoing = Ongoing(np.ones(3), ["flow", "heat", "load"])
    ongoing.begin(alarm_of(0, [5.0]))
    ongoing.clear(replace(alarm_of(0, [5.0]), cleared=3))
    ongoing.begin(alarm_of(4, [5.0]))
    return ongoing


def a_watch(name="last-value"):
    rows = np.random.default_rng(1).normal(size=(300, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Watch(name, budget="1/100 rows").fit(Series(rows, channels=("flow", "heat", "load")))


WATCH = a_watch()
STREAMS = {
    "last-value": {}, "ewma": {}, "random-guess": {}, "mahalanobis": {"window": 3}, "linear-last": {"window": 4},
    "combine": {"members": ("last-value", "ewma")},
}  # fmt: skip
DETECTORS = {
    name: make(name, **params).fit(np.random.default_rng(2).normal(size=(300, 3))) for name, params in STREAMS.items()
}
RULED = {name: fitted_rule(name) for name in RULES}


def tracking():
    run = WATCH.rule.start(threshold=1.0)
    run.step(WATCH.scored(WATCH.detector.normal_[:1]))  # the threshold in force is that of the last row
    return Course(WATCH, run, name="pump")


def judged(number, values):
    known = not np.isnan(values).any()
    filled = np.array(values) if known else None
    taken = Taken("ok" if known else "unusable", filled, None, None, number)
    statistic = abs(values[0]) if known else float("nan")
    active = bool(known and statistic > 1.0)
    point = np.full(WATCH.detector.normal_.shape[1], np.nan) if filled is None else filled
    return Judged(
        taken, point, statistic, statistic, active, number - (number % 3 if active else 0), known, filled, 1.0
    )


def given_row(number, values):
    jump = 0 if values[1] != values[1] else int(abs(values[1]) * 4)  # pauses, repeated and late rows
    return values, 60.0 * (number + jump)


def array(_, values):
    return np.array(values)


def evidence(_, values):
    return values[0]


def traces(trace):
    return [trace.row(place) for place in range(len(trace.statistic))]


def of_rule(found):
    evidence_, trace = found
    return [(np.sum(one), row[0], row[1], row[2]) for one, row in zip(evidence_, traces(trace), strict=True)]


def scores_of(found):
    return list(zip(found.points, found.scores, found.views, strict=True))


STAGES = {
    "clock": Case(lambda: RowClock(60.0), lambda number, values: read_time(given_row(number, values)[1], plain=True)),
    "clock without a period": Case(lambda: RowClock(None), lambda number, values: read_time(given_row(number, values)[1], plain=True)),
    "gap filling": Case(lambda: CarryForward(["flow", "heat", "load"]), array),
    "growth of counters": Case(lambda: Growth(["flow", "heat", "load"], ["heat"]), array),
    "row intake": Case(lambda: RowIntake(["flow", "heat", "load"], period=60.0, counters=["load"], step=60.0), given_row),
    "partial row intake": Case(lambda: RowIntake(["flow", "heat", "load"], period=None, partial=True), given_row),
    "climb": Case(Climb, evidence),
    "stillness": Case(lambda: Stillness(3), array),
    "recent rows": Case(lambda: RecentRows([(0, 1.0), (2, 0.5)]), array),
    "ongoing": Case(followed, array),
    "episode record": Case(lambda: EpisodeRecord(mark=1.0, room=4), evidence),
    "alarm tracking": Case(tracking, judged),
    "aggregation": Case(lambda: Aggregation(DETECTORS["combine"]), lambda _, values: np.array([*values, *values]), np.array, scores_of, lambda found: scores_of(found)[0]),
    "suppression": Case(lambda: Suppressor([Suppression.parse("flow:up:2")]), alarm_of),
    "liveness": Case(RollCall, lambda number, values: Heard("abc"[int(abs(np.nan_to_num(values[0]))) % 3], float(number), number)),
}  # fmt: skip
STAGES |= {
    f"stream of {name}": Case(
        lambda name=name: DETECTORS[name].stream(),
        lambda _, values: np.nan_to_num(values),  # gaps are filled before
        np.array,
    )
    for name in STREAMS
}
STAGES |= {
    f"evidence of {name}": Case(lambda name=name: RULED[name]._evidence_step(), lambda _, values: scored(values), joined, result=lambda found: found[0])
    for name in RULES
}  # fmt: skip
STAGES |= {
    f"rule {name}": Case(
        lambda name=name: RULED[name].start(threshold=2.0), lambda _, values: scored(values), joined, of_rule
    )
    for name in RULES
}
ACCUMULATORS = {
    **{f"cusum, {end}": lambda end=end: Cusum(threshold=2.0, end=end, cooldown=2) for end in POLICIES},
    "window sum": lambda: WindowSum(threshold=2.0, length=3, hold=2),
    "window sum, controlled": lambda: controlled(WindowSum(threshold=2.0, length=3, hold=2)),
    "compressed sum, controlled": lambda: controlled(CompressedSum(threshold=2.0, length=3, hold=2)),
}
STAGES |= {name: Case(make_, evidence, np.array, traces) for name, make_ in ACCUMULATORS.items()}

VALUES = st.one_of(st.floats(-6, 6, allow_subnormal=False), st.just(float("nan")))
ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=40)
CUTS = st.lists(st.integers(0, 40), max_size=4)


def same(found, wanted):
    np.testing.assert_equal(plain(found), plain(wanted))


def plain(value):
    """A result as lists, numbers and words, which can be compared where NaN stands for NaN."""
    if hasattr(value, "to_json"):
        value = value.to_json()
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def through_a_file(state):
    """The state as a file keeps it: a JSON document, and arrays by path."""
    document, arrays = split_state(state)
    return join_state(json.loads(json.dumps(document)), {name: array.copy() for name, array in arrays.items()})


@pytest.mark.parametrize("name", STAGES)
@given(ROWS, CUTS)
@settings(max_examples=12, deadline=None)
def test_a_batch_is_its_rows_and_a_restart_changes_nothing(name, drawn, cuts):
    case = STAGES[name]
    rows = [case.row(number, list(values)) for number, values in enumerate(drawn)]
    straight = case.make()
    wanted = [plain(case.result(straight.step(row))) for row in rows]

    stage, start, found = case.make(), 0, []
    for stop in [*sorted({cut for cut in cuts if 0 < cut < len(rows)}), len(rows)]:
        found += plain(case.results(stage.run(case.batch(rows[start:stop]))))
        state, stage, start = through_a_file(stage.state()), case.make(), stop
        stage.restore(state)
    same(found, wanted)
    same(stage.state(), straight.state())


@given(ROWS)
@settings(max_examples=30, deadline=None)
def test_gap_filling_of_a_whole_series_is_that_of_its_rows(drawn):
    found = [filled.values for filled in CarryForward(["a", "b", "c"]).run(np.array(drawn))]
    np.testing.assert_array_equal(found, carry_forward(np.array(drawn)))


def test_a_monitor_is_made_of_stages_and_every_one_is_in_the_list():
    monitor = WATCH.monitor()
    parts = [monitor.stream, monitor._intake, monitor._intake.clock, monitor._intake._carry, monitor._intake._growth]
    parts += [
        monitor.aggregation,
        monitor._run,
        monitor._run._evidence,
        monitor._run._accumulator,
        monitor.record,
        monitor._course,
    ]
    parts += [monitor._course.states, monitor._course._climb, monitor._course._still, monitor._course._recent]
    listed = {type(case.make()) for case in STAGES.values()}
    assert {type(part) for part in parts} <= listed
    for part in parts:
        assert all(callable(getattr(part, method)) for method in ("run", "step", "state", "restore"))
