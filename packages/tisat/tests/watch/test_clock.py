"""The clock of a stream against a reference implementation that keeps every time, and its properties."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tisat import Series
from tisat.gap_filling import FAR, MAX_GAP, MOST_WAITING, PACE_ROWS, time_flags
from tisat.io.timestamps import read_time
from tisat.watch.clock import NEW_CLOCK, SET_BACK, RowClock

PERIOD = 60.0
STEPS = [1, 1, 1, 1, 2, 10, 11, 12, 500, 1000, 1001, 1010, 1012, 4000, -1, -2, -11, -990, -1001, -5000, 0]  # in periods


class SlowClock:
    """Decides from the whole list of times and results so far; slow, and written from the documentation."""

    def __init__(self, period):
        self.period, self.past = period, []  # (time, result)

    def accepted(self):
        return [time for time, result in self.past if result in ("ok", "gap", "restart")]

    def usual(self):
        if self.period is not None:
            return self.period
        taken = [(time, result) for time, result in self.past if result in ("ok", "gap", "restart")]
        steps = [b - a for (a, _), (b, result) in pairwise(taken) if result != "restart" and b > a]
        return float(np.median(steps[:PACE_ROWS])) if steps else None

    def since_accepted(self):
        """Times and results after the last row that was accepted."""
        last = max(k for k, (_, result) in enumerate(self.past) if result in ("ok", "gap", "restart"))
        return self.past[last + 1 :]

    def spans(self):
        """The stretches of time that were seen; the two oldest become one where there are more than eight."""
        found = []
        for time, result in self.past:
            if result in ("gap", "restart") or (result == "ok" and not found):
                if result == "gap" and len(self.accepted_before(time)) == 1 and time < found[0][0]:
                    found = []  # the first row was wrong
                found.append([time, time])
                if len(found) > 8:
                    found[:2] = [[min(found[0][0], found[1][0]), max(found[0][1], found[1][1])]]
            elif result == "ok":
                found[-1][1] = time
        return found

    def accepted_before(self, time):
        index = next(k for k, (at, result) in enumerate(self.past) if at == time and result == "gap")
        return [at for at, result in self.past[:index] if result in ("ok", "gap", "restart")]

    def advance(self, time):
        result = self.decide(time)
        self.past.append((time, result))
        return result

    def decide(self, time):
        taken = self.accepted()
        if not taken:
            return "ok"
        last, usual, recent = taken[-1], self.usual(), self.since_accepted()
        if time == last:
            return "duplicate"
        if time < last:
            rose = any(b > a for a, b in pairwise(taken))
            if not rose and usual is not None and last - time > FAR * usual and not self.restarted():
                return "gap"
            return self.late(time, usual, [at for at, result in recent if result == "late"])
        if usual is not None and time - last > FAR * usual:
            waiting = [at for at, result in recent if result == "unconfirmed"]
            chain = []
            for at in waiting:  # each after the one before
                chain = [*chain, at] if chain and at > chain[-1] else [at]
            close = bool(chain) and 0 < time - chain[-1] <= MAX_GAP * usual
            if not close and not (chain and time > chain[-1] and len(chain) >= MOST_WAITING):
                return "unconfirmed"
        return "gap" if usual is not None and time - last > MAX_GAP * usual else "ok"

    def restarted(self):
        return any(result == "restart" for _, result in self.past)

    def late(self, time, usual, before):
        run = []
        for at in [*before, time]:
            if run and at == run[-1]:
                continue
            agrees = bool(run) and at > run[-1] and (usual is None or at - run[-1] <= MAX_GAP * usual)
            run = [*run, at] if agrees else [at]
        if before and time == before[-1]:
            return "late"
        inside = any(start <= at <= stop for at in run for start, stop in self.spans())
        return "restart" if len(run) >= (SET_BACK if inside else NEW_CLOCK) else "late"


@st.composite
def journeys(draw):
    """Times made of pieces: single odd steps, and runs at the pace from anywhere."""
    times, now = [], 0.0
    for _ in range(draw(st.integers(1, 6))):
        now += draw(st.sampled_from(STEPS)) * PERIOD
        length = draw(st.sampled_from([1, 1, 2, 3, 19, 20, 21, 25, 45]))
        step = draw(st.sampled_from([1, 1, 1, 11, 1001])) * PERIOD
        times += [now + step * k for k in range(length)]
        now = times[-1]
    return times


@given(journeys(), st.booleans(), st.sets(st.integers(1, 100), max_size=4))
@settings(max_examples=200, deadline=None)
@example([0.0, 60.0, *(4e6 + 60.0 * k for k in range(2)), *(60.0 * k for k in range(2, 40))], True, set())
def test_the_clock_is_its_reference_implementation_and_continues_from_its_state(times, known, cuts):
    period = PERIOD if known else None
    clock, slow = RowClock(period), SlowClock(period)
    for k, time in enumerate(times):
        if k in cuts:
            state, clock = clock.state(), RowClock(period)
            clock.restore(state)
        assert clock.step(read_time(time, plain=True)) == slow.advance(time), (k, time)


@given(st.lists(st.sampled_from([step for step in STEPS if step > 0]), min_size=1, max_size=60), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_file_is_flagged_as_the_clock_would(steps, known):
    times = PERIOD * np.cumsum([0, *steps])
    period = PERIOD if known else None
    clock = RowClock(period)
    found = [clock.step(read_time(time, plain=True)) for time in times.tolist()]
    left_out, begins = time_flags(Series(np.zeros(len(times)), timestamps=times), period)
    assert left_out.tolist() == [result == "unconfirmed" for result in found]
    assert begins.tolist() == [result == "gap" for result in found]


@given(journeys())
@settings(max_examples=50, deadline=None)
def test_dates_and_seconds_are_the_same_clock(times):
    clocks = RowClock(PERIOD), RowClock(PERIOD)
    origin = 1_770_000_000
    for time in times:
        stamp = np.datetime64(origin + int(time), "s")
        assert clocks[0].step(read_time(time, plain=True)) == clocks[1].step(read_time(stamp))


@pytest.mark.parametrize("step", [54.1, 60.0, 65.9, 66.1, 53.9, 1.0, 3600.0])
def test_the_pace_is_the_median_of_the_last_steps_at_any_time(step):
    clock, now = RowClock(PERIOD), 0.0
    for _ in range(1 + 2 * PACE_ROWS):
        clock.step(read_time(now))
        now += PERIOD
    assert clock.pace == PERIOD
    for _ in range(PACE_ROWS):
        now += step - PERIOD if _ == 0 else 0.0
        clock.step(read_time(now))
        now += step
    assert clock.pace == pytest.approx(step)


def test_late_rows_are_counted_until_one_is_good():
    clock = RowClock(PERIOD)
    for time in (0, 60, 120, 30, 45, 120):
        clock.step(read_time(time))
    assert clock.late == 3
    clock.step(read_time(180))
    assert (clock.late, clock.waiting, clock.candidate) == (0, 0, None)


def test_a_time_keeps_its_nanoseconds_and_fractions():
    whole = read_time("2026-01-01T00:00:00Z").value
    assert read_time(pd.Timestamp("2026-01-01T00:00:00.123456789Z")).value == whole + 123_456_789
    assert read_time(1_767_225_600.25).value == whole + 250_000_000
    assert read_time("1767225600.25").value == whole + 250_000_000
    found = Series([0.0, 1.0], timestamps=[1_767_225_600.25, 1_767_225_601.75])
    assert found.timestamps.astype(np.int64).tolist() == [whole + 250_000_000, whole + 1_750_000_000]


def test_a_monitor_counts_time_in_sampling_periods():
    from tisat.watch import Watch

    train = Series(np.random.default_rng(0).normal(size=(400, 1)), timestamps=PERIOD * np.arange(400))
    monitor = Watch("ewma", budget="1/50 rows").fit(train).monitor()
    monitor.update([0.0], time=600.0)
    assert monitor.time_step is None, "the first time is not to be relied on"
    monitor.update([0.0], time=660.0)
    assert monitor.time_step == 11.0


def test_a_time_far_ahead_that_was_not_confirmed_confirms_nothing_later():
    clock = RowClock(PERIOD)
    periods = (0, 1, 2000, 2, 3, 2005, 2006)
    found = [clock.step(read_time(PERIOD * k)) for k in periods]
    assert found == ["ok", "ok", "unconfirmed", "ok", "ok", "unconfirmed", "gap"]


@pytest.mark.parametrize(("back", "second"), [(1001, "gap"), (1500, "gap"), (1000, "late")])
def test_a_first_row_far_ahead_of_the_second_is_given_up(back, second):
    clock = RowClock(PERIOD)
    found = [clock.step(read_time(PERIOD * k)) for k in (back, 0)]
    assert found == ["ok", second]


def test_a_state_of_an_earlier_version_waits_for_nothing():
    clock = RowClock(60.0)
    for second in (0, 60, 120):
        clock.step(clock.read(float(second)))
    state = {
        name: value
        for name, value in clock.state().items()
        if name not in ("waiting", "agreeing", "behind", "repeated", "spans")
    }
    other = RowClock(60.0)
    other.restore(state)
    assert (other.waiting, other.agreeing, other.behind, other.repeated) == (0, 0, None, False)
    assert other.step(other.read(180.0)) == "ok"
