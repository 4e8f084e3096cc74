"""Engines: inline = local, a failure is a row, a dead worker is a row, and the rest goes on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest

from tisat.batch.engines import Inline
from tisat.batch.process_engine import Local, _Worker
from tisat.errors import ParameterError
from tisat_bench.driver import TaskJob, drive, pending
from tisat_bench.store import Store
from tisat_bench.task import fingerprint, make_task
from tisat_bench.task_run import run_task


def bits(outcomes):
    return {o.task.id: {name: array.tobytes() for name, array in o.arrays.items()} for o in outcomes}


def test_local_processes_give_the_same_bits_as_inline(task_of, plants):
    tasks = [task_of(name, entity) for name in ("linear-mean", "isolation-forest") for entity in ("plant-0", "plant-1")]
    inline = bits(Inline().each(TaskJob(plants), tasks))
    assert bits(Local(jobs=2).each(TaskJob(plants), tasks)) == inline
    assert all(len(arrays) == 3 for arrays in inline.values())


def test_running_a_task_twice_gives_the_same_bits_and_leaves_the_data_alone(task_of, plants):
    train, test = plants["plants"].pair("plant-0")
    before = train.values.tobytes(), test.values.tobytes()
    task = task_of("isolation-forest", seed=1)
    assert bits([run_task(task, train, test)]) == bits([run_task(task, train, test)])
    assert (train.values.tobytes(), test.values.tobytes()) == before


def test_detectors_never_see_labels(task_of, plants, monkeypatch):
    from tisat.detectors.last_value import LastValue

    seen = []
    for name in ("fit", "points"):
        original = getattr(LastValue, name)
        monkeypatch.setattr(
            LastValue,
            name,
            lambda self, series, *a, _f=original, **k: (seen.append(series.labels), _f(self, series, *a, **k))[1],
        )
    assert not run_task(task_of(), *plants["plants"].pair("plant-0")).failed
    assert len(seen) >= 2
    assert all(labels is None for labels in seen)


def test_a_failure_is_a_row_with_its_reason_and_command(task_of, plants):
    task = task_of("pca", window=100_000)
    outcome = run_task(task, *plants["plants"].pair("plant-0"))
    assert outcome.failed
    assert outcome.row["reason"].startswith("SeriesError: ")
    assert outcome.row["command"] == task.command
    assert "Traceback" in outcome.row["traceback"]
    assert not outcome.arrays


def test_changed_data_is_a_failure_not_a_figure(task_of, plants):
    outcome = run_task(task_of(entity="plant-0"), *plants["plants"].pair("plant-1"))
    assert "the files have changed" in outcome.row["reason"]


def test_a_killed_worker_is_a_failed_row_and_the_rest_goes_on(task_of, plants):
    tasks = [task_of("linear", "plant-0"), task_of("linear-last", "plant-0"), task_of("last-value", "plant-0")]
    killed = []

    def started(task):
        if not killed:
            (child,) = [one for one in multiprocessing.active_children() if one.pid not in before]
            killed.append(task.id)
            threading.Thread(target=os.kill, args=(child.pid, signal.SIGKILL)).start()

    before = {one.pid for one in multiprocessing.active_children()}
    outcomes = {o.task.id: o for o in Local(jobs=1).each(TaskJob(plants), tasks, started=started)}
    assert [o.failed for o in (outcomes[task.id] for task in tasks)] == [True, False, False]
    assert "exit code -9" in outcomes[killed[0]].row["reason"]


def test_a_task_that_takes_too_long_is_given_up(task_of, plants):
    (outcome,) = Local(jobs=1, timeout=0.05).each(TaskJob(plants), [task_of()])
    assert outcome.row["reason"].startswith("Timeout: ")


def test_the_start_of_a_worker_does_not_count(task_of):
    class Pipe:
        def send(self, task):
            pass

    worker = _Worker(None, Pipe())
    worker.assign(task_of(), 5.0)
    assert worker.deadline == float("inf")  # it has not said that it is there
    worker.mark_ready(5.0)
    assert worker.deadline < float("inf")
    worker.deadline = 0.0
    worker.assign(task_of(), 5.0)  # the next task begins at once
    assert 0.0 < worker.deadline < float("inf")


def test_leaving_the_iterator_stops_the_workers(task_of, plants):
    before = {one.pid for one in multiprocessing.active_children()}
    run = Local(jobs=1).each(TaskJob(plants), [task_of(), task_of("linear")])
    next(run)
    run.close()
    deadline = time.monotonic() + 10
    while {one.pid for one in multiprocessing.active_children()} - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not {one.pid for one in multiprocessing.active_children()} - before


def test_a_second_run_has_nothing_to_do_and_failures_are_tried_again_only_when_asked(tmp_path, task_of, plants):
    good, bad = task_of(), task_of("pca", window=100_000)
    store = Store(tmp_path)
    first = drive([good, bad, good], plants, store, Inline())
    assert (first.total, first.done, len(first.failed), first.left) == (2, 1, 1, 0)
    assert drive([good, bad], plants, store, Inline()).stored == 2
    assert pending([good, bad], store, retry_failed=True)[1] == [bad]


def test_an_interrupt_stops_cleanly_and_keeps_what_is_done(tmp_path, task_of, plants):
    class Interrupted:
        def each(self, job, tasks, *, started):
            yield from Inline().each(job, tasks[:1], started=started)
            raise KeyboardInterrupt

    progress = drive([task_of(), task_of("linear")], plants, Store(tmp_path), Interrupted())
    assert progress.interrupted
    assert str(progress) == "1 of 2 tasks done, 1 left"
    assert len(Store(tmp_path).rows()) == 1


def test_wrong_options_are_refused():
    with pytest.raises(ParameterError, match="'jobs' parameter of Local"):
        Local(jobs=0)
    with pytest.raises(ParameterError, match="'timeout' parameter of Local"):
        Local(timeout=-1)


def test_rows_say_what_a_task_cost(task_of, plants):
    row = run_task(task_of(), *plants["plants"].pair("plant-0")).row
    assert row["fit_seconds"] >= 0
    assert row["score_seconds"] > 0
    assert row["peak_bytes"] > 1e7
    assert {"processor", "python", "numpy"} <= set(row["machine"])
    assert np.isfinite(row["points"])


SMALL = {"window": 10, "hidden": 4, "layers": 1, "epochs": 3, "stride": 8}


def interrupted_after(monkeypatch, epochs):
    """Ctrl-C after so many checkpoints; how many epochs were trained is counted on."""
    from tisat.detectors import _training

    written, write = [], _training.write_checkpoint

    def counted(path, **parts):
        write(path, **parts)
        written.append(path)
        if len(written) == epochs:
            raise KeyboardInterrupt

    monkeypatch.setattr(_training, "write_checkpoint", counted)
    return written


@pytest.mark.parametrize("pooled", [(), ("plant-0", "plant-1")])
def test_an_interrupted_training_continues_to_the_same_scores(tmp_path, plants, monkeypatch, pooled):
    tasks = [
        make_task(
            dataset="plants", entity=entity, detector="lstm", params=SMALL, pooled=pooled,
            fingerprint=fingerprint(*plants["plants"].pair(entity)),
        )
        for entity in pooled or ("plant-0",)
    ]  # fmt: skip
    whole = bits([run_task(task, *plants["plants"].pair(task.entity), source=plants["plants"]) for task in tasks])
    store = Store(tmp_path)
    written = interrupted_after(monkeypatch, 2)
    assert drive(tasks, plants, store, Inline()).interrupted
    assert store.checkpoint(tasks[0]).exists()
    assert drive(tasks, plants, store, Inline()).done == len(tasks)
    assert len(written) == SMALL["epochs"]  # two before the interrupt, one after
    assert {task.id: {name: a.tobytes() for name, a in store.arrays(task.id).items()} for task in tasks} == whole
    assert not store.checkpoint(tasks[0]).exists()
    assert store.rows()[tasks[0].id]["epochs"] == SMALL["epochs"]


def test_a_damaged_checkpoint_starts_the_training_over(tmp_path, task_of, plants):
    task, store = task_of("lstm", **SMALL), Store(tmp_path)
    whole = bits([run_task(task, *plants["plants"].pair("plant-0"))])
    store.checkpoint(task).parent.mkdir()
    store.checkpoint(task).write_bytes(b"cut off")
    outcomes = list(Inline().each(TaskJob(plants, store), [task]))
    assert [outcome.row["status"] for outcome in outcomes] == ["done"]
    assert bits(outcomes) == whole
