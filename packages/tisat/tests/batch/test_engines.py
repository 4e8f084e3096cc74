"""Engines by name, and a cluster that is only pretended: every item once, lost ones told, nothing left running."""

import itertools
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from tisat.batch import ray_engine as clusters
from tisat.batch.engines import Inline, make_engine
from tisat.batch.process_engine import READY, Local, _work
from tisat.batch.ray_engine import Cluster
from tisat.errors import ParameterError


class LostError(Exception):
    pass


class Ray:
    """What is asked of ray: references are tuples that are worked on when they are fetched, the last handed out first."""

    def __init__(self, *, there=False):
        self.there, self.put_values, self.cancelled, self.begun, self.ended, self.most = there, [], [], [], 0, 0
        names = ("RaySystemError", "RayTaskError", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError", "TaskCancelledError")  # fmt: skip
        self.exceptions = SimpleNamespace(**dict.fromkeys(names, LostError))
        self._number = itertools.count()

    def is_initialized(self):
        return self.there

    def init(self, **how):
        self.begun.append(how)

    def shutdown(self):
        self.ended += 1

    def put(self, value):
        self.put_values.append(value)
        return value

    def remote(self, **how):
        self.options = how
        return lambda call: SimpleNamespace(remote=lambda *given: (next(self._number), call, given))

    def cluster_resources(self):
        return {"CPU": 1.0}

    def wait(self, references, num_returns):
        self.most = max(self.most, len(references))
        return references[-1:], references[:-1]

    def get(self, reference):
        _, call, given = reference
        return call(*given)

    def cancel(self, reference, force):
        self.cancelled.append(reference)


class Square:
    def __call__(self, item):
        if item == 3:
            raise LostError
        return item * item

    def lost(self, item, why):
        return (item, why)


@dataclass(frozen=True)
class Sum:
    """Adds to an item what all items of its kind share."""

    data: tuple[int, ...] | None

    def light(self):
        return Sum(None)

    def share(self, item):
        return item % 2, lambda: self.data[item % 2]

    def with_shared(self, item, value):
        assert self.data is None, "the data travels apart"
        return item + value

    def lost(self, item, why):
        raise AssertionError(why)


@pytest.fixture
def ray(monkeypatch):
    pretended = Ray()
    monkeypatch.setattr(clusters, "require", lambda *_, **__: pretended)
    return pretended


def test_every_item_once_and_a_lost_one_is_told(ray):
    started = []
    found = list(Cluster(jobs=2, retries=1).each(Square(), range(6), started=started.append))
    assert (3, "WorkerDied: LostError after 1 retries") in found
    assert sorted(one for one in found if isinstance(one, int)) == [0, 1, 4, 16, 25]
    assert started == list(range(6))
    assert ray.most == 2, "two items a core are handed out, no more"
    assert (ray.begun[0]["num_cpus"], ray.begun[0]["address"], ray.options["max_retries"]) == (2, "local", 1)
    assert (ray.ended, ray.cancelled) == (1, [])


def test_what_is_shared_is_put_once_for_each_kind(ray):
    assert sorted(Cluster(address="10.0.0.1:6379").each(Sum((10, 20)), range(4))) == [10, 12, 21, 23]
    assert ray.put_values == [Sum(None), 10, 20]
    assert "num_cpus" not in ray.begun[0]


def test_leaving_ends_what_runs_and_only_a_cluster_of_our_own(ray):
    ray.there = True
    running = Cluster().each(Square(), range(5))
    assert next(running) == 1
    running.close()
    assert len(ray.cancelled) == 1
    assert (ray.begun, ray.ended) == ([], 0), "somebody else began it"
    assert list(Cluster().each(Square(), [])) == []


def test_engines_by_name():
    assert isinstance(make_engine("local"), Inline)
    assert make_engine("ray", jobs=3) == Cluster(jobs=3)
    assert make_engine("ray", jobs=3, address="auto") == Cluster(address="auto")
    for name, how, must in (
        ("steam", {}, "engine must be one of"),
        ("local", {"address": "auto"}, "must come with --engine ray"),
        ("ray", {"jobs": 0}, "'jobs' parameter of Cluster must be an integer >= 1"),
    ):
        with pytest.raises(ParameterError, match=must):
            make_engine(name, **how)
    with pytest.raises(ParameterError, match="'retries' parameter of Cluster"):
        Cluster(retries=-1)


def test_a_worker_works_until_there_is_no_more(monkeypatch):
    sent, items = [], [(3,), (4,)]

    def recv():
        if not items:
            raise EOFError
        return items.pop(0)

    monkeypatch.setattr("tisat.batch.process_engine.signal.signal", lambda *_: None)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    _work(SimpleNamespace(send=sent.append, recv=recv), lambda item: -item, 1)
    assert sent == [READY, (-3,), (-4,)]


def test_a_worker_has_its_next_item_before_its_result_is_dealt_with():
    order = []
    run = Local(jobs=1).each(Square(), [1, 2, 4], started=lambda item: order.append(("begun", item)))
    order.extend(("result", result) for result in run)
    assert order == [("begun", 1), ("begun", 2), ("result", 1), ("begun", 4), ("result", 4), ("result", 16)]
