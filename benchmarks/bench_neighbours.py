"""Which exact nearest-neighbour method is quickest at which dimension, one query at a time and many at once.

    python benchmarks/bench_neighbours.py

Synthetic residuals: four shared heavy-tailed factors and heavy-tailed noise; 2,500 and 10,000 points. Processor time of
one thread, best of several rounds, the methods taking turns. ``scan`` is the package's own (:mod:`tisat.utils.neighbors`); the k-d tree and the
bare matrix product are there to compare.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")


import numpy as np
from rounds import best_of
from scipy.spatial import cKDTree

from tisat.alarms import Neighbours

METHODS = ("tree", "product", "scan")


class Tree:
    """scipy's k-d tree, as it comes."""

    def __init__(self, points):
        self._tree = cKDTree(points)

    def distances(self, queries):
        return self._tree.query(queries)[0]


class Product:
    """A float32 matrix product, its winner measured again in float64: exact only if the winner is the right one."""

    def __init__(self, points):
        self._points, self._single = points, np.ascontiguousarray(points.T, dtype=np.float32)
        self._squares = (self._single**2).sum(axis=0)

    def distances(self, queries):
        nearest = (self._squares - 2.0 * (queries.astype(np.float32) @ self._single)).argmin(axis=1)
        return np.sqrt(((queries - self._points[nearest]) ** 2).sum(axis=1))


def make(method, points):
    return (
        {"tree": Tree, "product": Product}[method](points)
        if method in ("tree", "product")
        else Neighbours(points, method=method)
    )


def residuals(length, m, seed):
    rng = np.random.default_rng(seed)
    factors = rng.standard_t(3, size=(length, min(m, 4))) @ np.random.default_rng(7).normal(size=(min(m, 4), m))
    return 0.3 * factors + 0.3 * rng.standard_t(4, size=(length, m))


def main():
    print(
        "| m | points | "
        + " | ".join(f"{method}, one" for method in METHODS)
        + " | "
        + " | ".join(f"{method}, many" for method in METHODS)
        + " |"
    )
    print("|---" * (2 + 2 * len(METHODS)) + "|")
    for m in (2, 4, 8, 16, 38, 55):
        for count in (2500, 10_000):
            points, queries = residuals(count, m, 0), residuals(200, m, 1)
            made = {method: make(method, points) for method in METHODS}
            answers = {method: one.distances(queries) for method, one in made.items()}
            np.testing.assert_allclose(answers["scan"], answers["tree"], rtol=1e-12)
            few = [query[None] for query in queries[:30]]
            ones = best_of(
                {name: lambda n=one, few=few: [n.distances(q) for q in few] for name, one in made.items()}, rounds=4
            )
            many = best_of(
                {name: lambda n=one, queries=queries: n.distances(queries) for name, one in made.items()}, rounds=3
            )
            cells = [f"{1e6 * ones[name] / len(few):.0f}" for name in METHODS] + [
                f"{1e6 * many[name] / len(queries):.0f}" for name in METHODS
            ]
            print(f"| {m} | {count} | " + " | ".join(cells) + " |", flush=True)
    print("\nmicroseconds a query")


if __name__ == "__main__":
    main()
