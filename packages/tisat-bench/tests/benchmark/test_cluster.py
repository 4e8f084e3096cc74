"""Ray: the same bits as inline, on a real local cluster of two nodes, one of which is killed in the middle."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tisat.batch.engines import Inline
from tisat_bench.driver import drive
from tisat_bench.store import Store

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]


def bits(store: Store) -> dict[str, dict[str, bytes]]:
    return {
        identifier: {name: array.tobytes() for name, array in store.arrays(identifier).items()}
        for identifier in store.rows()
    }


def alive(ray) -> int:
    return sum(node["Alive"] for node in ray.nodes())


def test_a_two_node_cluster_that_loses_a_node_gives_the_same_bits_as_inline(tmp_path, task_of, plants):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from tisat.batch.ray_engine import Cluster as Ray

    names = ("linear-mean", "isolation-forest", "pca", "last-value")
    tasks = [task_of(name, f"plant-{entity}", seed=seed) for name in names for entity in range(3) for seed in range(2)]
    drive(tasks, plants, Store(tmp_path / "inline"), Inline())

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        doomed = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        killed = []

        def watch(progress):
            if progress.done == 2 and not killed:
                killed.append(alive(ray))
                cluster.remove_node(doomed, allow_graceful=False)

        progress = drive(tasks, plants, Store(tmp_path / "ray"), Ray(), watch=watch)
        assert killed == [2], "both nodes were there when one was killed"
        deadline = time.monotonic() + 60  # the cluster notices by missing heartbeats
        while alive(ray) > 1 and time.monotonic() < deadline:
            time.sleep(0.5)
        assert alive(ray) == 1
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert not [outcome.row["reason"] for outcome in progress.failed]
    assert bits(Store(tmp_path / "ray")) == bits(Store(tmp_path / "inline"))


def test_the_command_line_gives_identical_tables_on_local_and_ray(tmp_path):
    pytest.importorskip("ray")
    experiment = Path(__file__).parents[4] / "experiments" / "smoke.toml"
    pages = {}
    for engine in ("local", "ray"):
        words = [
            "bench",
            str(experiment),
            "--engine",
            engine,
            "--jobs",
            "2",
            "--store",
            str(tmp_path / engine),
            "--freeze",
            str(tmp_path / f"frozen-{engine}"),
        ]
        done = subprocess.run([sys.executable, "-m", "tisat", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        folder = tmp_path / f"frozen-{engine}" / "smoke"
        pages[engine] = {
            name: (folder / name).read_bytes() for name in ("differences.csv", "entities.csv", "baselines.csv")
        }
        figures, _, _ = done.stdout.partition("How each was run")  # below it seconds and memory differ, figures may not
        pages[engine]["spd"] = figures.encode()
    assert pages["local"] == pages["ray"]
