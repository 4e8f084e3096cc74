"""A task is a value: equal fields, equal hash; any other field, another hash."""

from __future__ import annotations

import dataclasses
import json
import shlex

import numpy as np
import pytest

from tisat import Series
from tisat.errors import InputError, ParameterError
from tisat_bench.task import Task, fingerprint, is_random, make_task


def test_the_hash_changes_with_every_field_and_with_nothing_else(task_of):
    task = task_of("ewma")
    other = {
        "dataset": "smd",
        "entity": "plant-9",
        "detector": "linear",
        "params": (("smoothing", 0.2),),
        "seed": 1,
        "evidence": (),
        "fingerprint": "f" * 16,
        "version": "9.9.9",
        "pooled": ("plant-1", "plant-2"),
        "code": "c" * 16,
    }
    assert set(other) == {field.name for field in dataclasses.fields(Task)}
    hashes = {dataclasses.replace(task, **{name: value}).id for name, value in other.items()}
    assert len(hashes | {task.id}) == len(other) + 1
    assert task_of("ewma").id == task.id
    assert task_of("ewma", smoothing=0.1).id == task.id  # the default, spelled out


def test_an_edited_detector_of_your_own_is_another_task(task_of, own_detector):
    first = task_of("mine")
    assert Task.from_json(json.loads(json.dumps(first.to_json()))) == first
    assert task_of("mine").id == first.id
    own_detector.write_text(own_detector.read_text() + "# edited\n")
    assert task_of("mine").id != first.id
    assert task_of("pca").code == ""


def test_json_and_repr_give_the_task_back(task_of):
    task = task_of("isolation-forest", seed=3)
    assert Task.from_json(json.loads(json.dumps(task.to_json()))) == task
    assert eval(repr(task), {"Task": Task}) == task


def test_the_command_holds_the_whole_task(task_of):
    task = task_of("pca", window=5)
    words = shlex.split(task.command)
    assert words[:3] == ["tisat", "bench", "--task"]
    assert Task.from_json(json.loads(words[3])).id == task.id


def test_parameters_are_full_and_the_seed_is_apart(task_of):
    task = task_of("isolation-forest", seed=5)
    assert "random_state" not in dict(task.params)
    assert task.build().get_params() == {**dict(task.params), "random_state": 5}
    assert task_of("last-value", seed=5).seed is None
    assert is_random("isolation-forest")
    assert not is_random("pca")


def test_parameters_that_are_gone_stay_in_the_hash_and_are_not_given():
    task = make_task(dataset="smd", entity="m", detector="lstm", fingerprint="0" * 16)
    assert {("horizon", 1), ("aggregation", "mean")} <= set(task.params)
    assert not {"horizon", "aggregation"} & set(task.build().get_params())


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"random_state": 1}, "must be given as 'seeds'"),
        ({"windw": 3}, "Got 'windw' instead"),
        ({"window": object()}, "must be numbers, text"),
    ],
)
def test_wrong_parameters_are_refused_before_anything_runs(params, sentence):
    with pytest.raises(ParameterError, match=sentence):
        make_task(dataset="plants", entity="plant-0", detector="pca", params=params, fingerprint="")


def test_a_task_from_foreign_json_is_refused():
    with pytest.raises(InputError, match="must have the fields"):
        Task.from_json({"dataset": "smd"})


def test_the_fingerprint_sees_every_value_and_label():
    values = np.arange(12.0).reshape(6, 2)
    series = Series(values, labels=[0, 0, 1, 0, 0, 0])
    base = fingerprint(series, series)
    changed = values.copy()
    changed[5, 1] += 1e-9
    assert fingerprint(series, Series(changed, labels=series.labels)) != base
    assert fingerprint(Series(changed, labels=series.labels), series) != base
    assert fingerprint(series, Series(values, labels=[0, 1, 0, 0, 0, 0])) != base
    assert (
        fingerprint(Series(np.asfortranarray(values), labels=series.labels), series) == base
    )  # memory layout is not content


def test_a_pooled_task_trains_one_model_on_all_entities_and_scores_each(monkeypatch):
    from tisat.detectors import LSTM
    from tisat_bench.sources import Source
    from tisat_bench.task_run import run_from

    source = Source("plants")
    fits = []
    fit = LSTM.fit_together
    monkeypatch.setattr(LSTM, "fit_together", lambda self, many: fits.append(len(many)) or fit(self, many))
    params = {"window": 10, "hidden": 4, "layers": 1, "epochs": 1, "stride": 8}
    names = ("plant-0", "plant-1")
    outcomes = []
    for entity in names:
        seen = fingerprint(*source.pair(entity))
        task = make_task(
            dataset="plants", entity=entity, detector="lstm", params=params, fingerprint=seen, pooled=names
        )
        assert Task.from_json(task.to_json()) == task
        outcomes.append(run_from(task, source))
    assert fits == [2]
    assert [outcome.row["status"] for outcome in outcomes] == ["done", "done"]
    assert outcomes[0].row["steps"] > 0
    assert outcomes[0].row["epochs"] == 1
    assert "trained on 2 entities together" in str(outcomes[0].task)
    alone = make_task(dataset="plants", entity="plant-0", detector="lstm", params=params, fingerprint="0" * 16)
    assert "pooled" not in alone.to_json()
