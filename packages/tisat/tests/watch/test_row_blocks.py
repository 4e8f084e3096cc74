"""Many rows at a time give what single rows give, whatever is among them, and the state they leave is the same."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tisat.detectors import streaming
from tisat.errors import SeriesError
from tisat.series import Series
from tisat.utils.stage import split_state
from tisat.watch import input_lines, line_results, row_blocks
from tisat.watch.input_lines import BoundedLines
from tisat.watch.monitor import Monitor
from tisat.watch.text_stream import Switch, watch_lines
from tisat.watch.watch import Watch
from waves import assert_close, quietly

ROWS = 700
CASES = {
    "prism": ("prism", {}, "excess", {}),
    "prism that takes changes for normal": ("prism", {}, "excess", {"rearm": "30 rows"}),
    "mahalanobis": ("mahalanobis", {"window": 3}, "excess", {"control": False}),
    "linear-last": ("linear-last", {"window": 4}, "paper", {}),
    "ewma": ("ewma", {}, "excess", {}),
    "combine": ("combine", {"members": ("last-value", ("mahalanobis", {"window": 3}))}, "excess", {}),
    "last-value": ("last-value", {}, "threshold", {}),
}
WATCHES: dict[str, Watch] = {}


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    load = np.sin(t / 30.0) + 0.3 * np.sin(t / 7.0)
    return np.outer(load, np.linspace(0.5, 2.0, 3)) + 0.1 * rng.standard_normal((rows, 3))


def watch_of(case: str) -> Watch:
    if case not in WATCHES:
        from tisat.detectors import make

        name, parameters, rule, options = CASES[case]
        train = Series(plant(3000, 1), timestamps=60.0 * np.arange(3000), channels=("flow", "heat", "load"))
        WATCHES[case] = quietly(Watch(make(name, **parameters), rule=rule, budget="1/300 rows", **options).fit, train)
    return WATCHES[case]


def eventful(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows with faults, holes and a step, at times with pauses, repeated and late ones and one far ahead."""
    rows = plant(ROWS, int(rng.integers(1000)))
    for _ in range(3):
        at, length = int(rng.integers(ROWS)), int(rng.integers(3, 60))
        rows[at : at + length, rng.integers(3)] += rng.normal(scale=3.0)
    if rng.random() < 0.5:
        rows[int(rng.integers(ROWS)) :, rng.integers(3)] += 2.0
    for _ in range(int(rng.integers(4))):
        at = int(rng.integers(ROWS))
        rows[at : at + int(rng.integers(1, 30)), rng.integers(3)] = np.nan
    steps = np.full(ROWS, 60.0)
    for _ in range(int(rng.integers(4))):
        steps[rng.integers(1, ROWS)] = 60.0 * rng.choice([0.0, -3.0, 5.0, 30.0, 2000.0])
    return rows, np.cumsum(steps)


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "LEAST", 5)
    monkeypatch.setattr(streaming, "LEAST_BLOCK", 5)
    monkeypatch.setattr(row_blocks, "BLOCK", 230)


@pytest.mark.parametrize("case", CASES)
@given(
    seed=st.integers(0, 2**31),
    cuts=st.lists(st.integers(1, ROWS - 1), max_size=3),
    timed=st.sampled_from(["", "s", "date", "text"]),
)
@settings(max_examples=4, deadline=None)
def test_blocks_are_their_rows_and_leave_the_same_state(case, seed, cuts, timed):
    watch, rng = watch_of(case), np.random.default_rng(seed)
    rows, seconds = eventful(rng)
    times: Any = None
    if timed:
        dates = np.datetime64("2026-03-01") + (1e9 * seconds).astype("timedelta64[ns]")
        times = {"s": seconds, "date": dates, "text": [f"{one}+01:00" for one in dates.astype("datetime64[s]")]}[timed]
    single, many = watch.monitor(name="pump"), watch.monitor(name="pump")
    wanted = [single.update(row, None if times is None else times[t]) for t, row in enumerate(rows)]
    found, start = [], 0
    with pytest.MonkeyPatch.context() as monkeypatch:
        small_blocks(monkeypatch)
        for stop in [*sorted(set(cuts)), ROWS]:
            given_rows = rows[start:stop] if seed % 2 else rows[start:stop].tolist()
            found += many.extend(given_rows, None if times is None else times[start:stop])
            many, start = Monitor.load(watch, many.to_bytes()), stop
    assert_close(found, wanted)
    for mine, others in zip(split_state(many.state()), split_state(single.state()), strict=True):
        assert_close(mine, others)


def test_a_block_gives_alarms_and_keeps_to_the_code_for_whole_series(monkeypatch):
    watch = watch_of("prism")
    rows = plant(2000, 7)
    rows[900:940, 1] += 4.0
    monitor, taken = watch.monitor(), []
    wanted = [watch.monitor().update(rows[0])]
    monkeypatch.setattr(type(watch.detector), "_answers", lambda self, windows: taken.append(len(windows)))
    results = monitor.extend(rows)
    assert not taken  # no window was asked about
    assert results[0].row == wanted[0].row
    assert [one.row for one in results] == list(range(2000))
    alarms = watch.alarms(rows)
    assert [one.row for one in results if one.raised] == [one.raised for one in alarms]
    assert [one.row for one in results if one.cleared] == [one.cleared for one in alarms if one.cleared is not None]


def test_rows_that_cannot_be_read_are_refused_between_blocks(monkeypatch):
    small_blocks(monkeypatch)
    watch = watch_of("mahalanobis")
    rows: list[Any] = plant(300, 3).tolist()
    rows[100], rows[200] = ["x", 1.0, 2.0], [1.0]
    single, many = watch.monitor(), watch.monitor()
    found = many.extend(rows)
    assert [place for place, one in enumerate(found) if one.status == "refused"] == [100, 200]
    wanted = [single.update(row) for place, row in enumerate(rows) if place not in (100, 200)]
    assert_close([one for one in found if one.status != "refused"], wanted)


@pytest.mark.parametrize("pace", [60.0, 90.0])
def test_the_pace_of_the_rows_is_found_to_be_wrong_at_the_same_row(monkeypatch, pace):
    small_blocks(monkeypatch)
    watch, rows = watch_of("last-value"), plant(400, 3)
    times = np.cumsum(np.where(np.arange(400) < 217, 60.0, pace))
    single, many = watch.monitor(), watch.monitor()
    wrong = []
    for row, time in zip(rows, times, strict=True):
        single.update(row, time)
        wrong.append(single.wrong_pace)
    first = next((place for place, one in enumerate(wrong) if one), None)
    assert (first is None) == (pace == 60.0)
    for stop in (first or 300, 400):
        many.extend(rows[many.rows : stop], times[many.rows : stop])
        assert many.wrong_pace == wrong[stop - 1]


def written(watch: Watch, text: bytes, *, together: bool) -> tuple[list[dict[str, Any]], list[str]]:
    lines, out, said = BoundedLines(io.BytesIO(text)), io.BytesIO(), list[str]()
    watch_lines(
        watch.monitor(),
        lines,
        out,
        report=said.append,
        any_period=True,
        ahead=lines.at_hand if together else lambda: False,
    )
    return [json.loads(line) for line in out.getvalue().splitlines()], said


def a_log(rows: np.ndarray, times: np.ndarray) -> list[bytes]:
    lines = ["time,flow,heat,load"]
    lines += [
        f"{time!r}," + ",".join("" if one != one else repr(one) for one in row)
        for row, time in zip(rows.tolist(), times.tolist(), strict=True)
    ]
    return [line.encode() + b"\n" for line in lines]


@pytest.mark.parametrize("seed", range(4))
def test_lines_that_come_together_are_answered_as_single_ones(monkeypatch, seed):
    small_blocks(monkeypatch)
    monkeypatch.setattr(line_results, "LEAST", 5)
    monkeypatch.setattr(input_lines, "CHUNK", 3000)
    watch = watch_of("mahalanobis")
    lines = a_log(*eventful(np.random.default_rng(seed)))
    lines[400:400] = [b"\n", b"garbage,1,2,3\n", b"1,2\n"]
    (found, said), (wanted, told) = (written(watch, b"".join(lines), together=together) for together in (True, False))
    assert_close(found, wanted)
    assert said == told
    assert [one["line"] for one in found] == [number for number in range(2, len(lines) + 1) if number != 401]


def test_a_switch_ends_after_the_lines_that_have_come(tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    watch, rows = watch_of("last-value"), plant(300, 3)
    text = b"".join(a_log(rows, 60.0 * np.arange(300)))
    lines, switch, seen = BoundedLines(io.BytesIO(text)), Switch(), []

    def ahead() -> bool:
        seen.append(1)
        if len(seen) == 150:
            switch()
        return lines.at_hand()

    with (tmp_path / "out").open("wb") as out:
        note = watch_lines(
            watch.monitor(), lines, out, state=tmp_path / "state", every=1000, switch=switch, ahead=ahead
        )
    content = (tmp_path / "out").read_bytes()
    assert note.lines == 150
    assert len(content.splitlines()) == 149  # a header and 149 rows
    assert note.bytes == len(content)


def test_a_state_is_kept_as_often_as_asked_however_lines_come(tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    watch, kept = watch_of("last-value"), []
    text = b"".join(a_log(plant(300, 3), 60.0 * np.arange(300)))
    lines, monitor = BoundedLines(io.BytesIO(text)), watch.monitor()
    monkeypatch.setattr(monitor, "snapshot", lambda path, note: kept.append(note["lines"]))
    with (tmp_path / "out").open("wb") as out:
        watch_lines(monitor, lines, out, state=tmp_path / "state", every=50, ahead=lines.at_hand)
    assert kept == [50, 100, 150, 200, 250, 300, 301]


def test_the_pace_ends_a_watch_at_the_same_row(monkeypatch):
    small_blocks(monkeypatch)
    monkeypatch.setattr(line_results, "LEAST", 5)
    watch, rows = watch_of("last-value"), plant(400, 3)
    text = b"".join(a_log(rows, np.cumsum(np.where(np.arange(400) < 217, 60.0, 90.0))))
    ended = []
    for together in (True, False):
        lines, out = BoundedLines(io.BytesIO(text)), io.BytesIO()
        with pytest.raises(SeriesError, match="must come every 60 seconds"):
            watch_lines(watch.monitor(), lines, out, ahead=lines.at_hand if together else lambda: False)
        ended.append(len(out.getvalue().splitlines()))
    assert ended[0] == ended[1] < 300
