"""A store loses nothing but the task in flight."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tisat.benchmark.run import Outcome, lost_task, run_task
from tisat.benchmark.store import Store
from tisat.errors import InputError


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
    assert set(arrays) == {"scores", "nominal", "paper"}
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
