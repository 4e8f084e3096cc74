"""A store loses nothing but the task in flight."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from tisat.errors import InputError
from tisat_bench.store import Store
from tisat_bench.task_run import Outcome, lost_task, run_task


@pytest.fixture
def outcome(task_of, plants) -> Outcome:
    task = task_of("random-guess")
    return run_task(task, *plants["plants"].pair(task.entity))


def test_what_is_put_comes_back_to_the_bit(tmp_path, outcome):
    Store(tmp_path).put(outcome)
    again = Store(tmp_path)
    (row,) = again.rows().values()
    assert {name: value for name, value in row.items() if name != "checksum"} == outcome.row
    arrays = again.arrays(outcome.task.id)
    assert set(arrays) == {"scores", "normal", "paper"}
    for name, array in outcome.arrays.items():
        assert arrays[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_row_cut_off_by_a_kill_is_skipped_and_the_next_one_is_whole(tmp_path, outcome, task_of, cut):
    store = Store(tmp_path)
    store.put(outcome)
    log = tmp_path / "rows.jsonl"
    second = lost_task(task_of("last-value"), "WorkerDied: a test")
    store.put(second)
    whole = log.read_bytes()
    log.write_bytes(whole[:-cut])
    # one byte less is the newline alone: the row is whole, and must not be lost nor glued to the next
    assert set(store.rows()) == ({outcome.task.id} if cut > 1 else {outcome.task.id, second.task.id})
    third = lost_task(task_of("linear"), "WorkerDied: a test")
    store.put(third)
    assert {outcome.task.id, third.task.id} <= set(store.rows())
    assert sum(1 for line in log.read_bytes().split(b"\n") if line) == 3


def test_the_log_only_grows_and_the_latest_row_counts(tmp_path, outcome):
    store = Store(tmp_path)
    store.put(lost_task(outcome.task, "WorkerDied: a test"))
    before = (tmp_path / "rows.jsonl").read_bytes()
    store.put(outcome)
    assert (tmp_path / "rows.jsonl").read_bytes().startswith(before)
    assert store.rows()[outcome.task.id]["status"] == "done"


def test_foreign_lines_are_not_rows(tmp_path):
    (tmp_path / "rows.jsonl").write_text('[]\n{"id": "../../etc"}\nnull\n' + json.dumps({"id": 3}) + "\n")
    assert Store(tmp_path).rows() == {}


def test_two_writers_are_refused(tmp_path):
    with Store(tmp_path).writing(), pytest.raises(InputError, match="one writer at a time"), Store(tmp_path).writing():
        pass
    with Store(tmp_path).writing():
        pass


def test_arrays_of_a_task_that_is_not_there_are_an_error(tmp_path):
    with pytest.raises(InputError, match="must hold the scores of task"):
        Store(tmp_path).arrays("0" * 16)


def test_array_files_hold_no_objects(tmp_path, outcome):
    Store(tmp_path).put(outcome)
    (file,) = (tmp_path / "scores").iterdir()
    with np.load(file, allow_pickle=False) as opened:
        assert all(opened[name].dtype == np.float64 for name in opened.files)


@pytest.mark.parametrize(
    "harm", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:60] + b"\0" + b[61:], lambda b: b"not a zip"]
)
def test_damaged_arrays_are_one_sentence_with_the_way_to_mend_them(tmp_path, outcome, harm):
    store = Store(tmp_path)
    store.put(outcome)
    file = tmp_path / "scores" / f"{outcome.task.id}.npz"
    file.write_bytes(harm(file.read_bytes()))
    with pytest.raises(InputError, match=f"task {outcome.task.id} is damaged.*Remove.*run the same"):
        store.arrays(outcome.task.id)


def test_the_arrays_of_another_task_are_told_by_their_checksum(tmp_path, outcome, task_of):
    store = Store(tmp_path)
    store.put(outcome)
    other = replace(
        outcome,
        task=task_of("last-value"),
        row={**outcome.row, "id": task_of("last-value").id},
        arrays={k: v + 1 for k, v in outcome.arrays.items()},
    )
    store.put(other)
    files = [tmp_path / "scores" / f"{one.task.id}.npz" for one in (outcome, other)]
    files[0].write_bytes(files[1].read_bytes())
    with pytest.raises(InputError, match="not those its row was written for"):
        store.arrays(outcome.task.id)


@pytest.mark.parametrize("lacking", ["task", "machine", "fit_seconds", "peak_bytes"])
def test_a_row_that_lacks_something_is_no_row(tmp_path, outcome, lacking):
    store = Store(tmp_path)
    store.put(outcome)
    row = json.loads((tmp_path / "rows.jsonl").read_text())
    del row[lacking]
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n" + "[" * 100_000 + "\n")
    assert store.rows() == {}


def test_a_short_write_is_gone_on_with(tmp_path, outcome, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, content: write(handle, content[:50]))
    Store(tmp_path).put(outcome)
    monkeypatch.undo()
    assert list(Store(tmp_path).rows()) == [outcome.task.id]
