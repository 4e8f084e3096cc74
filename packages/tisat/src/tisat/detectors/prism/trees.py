"""Boosted regression trees, fitted by scikit-learn and evaluated by a compiled loop, as arrays that a file can hold.

One forest holds the trees of several targets. A node is five numbers: feature, threshold, left, right, value; a leaf has no
left. Children come after their parents, within their tree, so that a walk ends whatever the file says; :meth:`Forest.check`
refuses arrays of a file that say otherwise. This module does not know views.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from tisat.utils.compiled import compiled
from tisat.utils.types import Array, Integers

TREES = 40  # of one target
LEAVES = 15
RATE = 0.15
SMALLEST_LEAF = 20  # rows
COLUMNS = 5  # of a node
TOGETHER = 4  # trees that are walked side by side


@compiled()
def walk(
    inputs: Array, out: Array, feature: Integers, left: Integers, right: Integers, threshold: Array, value: Array, roots: Integers,
    first: Integers,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """Add the trees of each target to ``out`` (n, targets); a leaf is its own child. Four at a time: none waits for another."""
    for i in range(len(inputs)):
        row = inputs[i]
        for target in range(len(first) - 1):
            total = 0.0
            for tree in range(first[target], first[target + 1], TOGETHER):
                a, b, c, d = roots[tree], roots[tree + 1], roots[tree + 2], roots[tree + 3]
                moved = True
                while moved:
                    next_a = left[a] if row[feature[a]] <= threshold[a] else right[a]
                    next_b = left[b] if row[feature[b]] <= threshold[b] else right[b]
                    next_c = left[c] if row[feature[c]] <= threshold[c] else right[c]
                    next_d = left[d] if row[feature[d]] <= threshold[d] else right[d]
                    moved = (next_a != a) | (next_b != b) | (next_c != c) | (next_d != d)
                    a, b, c, d = next_a, next_b, next_c, next_d
                total = total + value[a] + value[b] + value[c] + value[d]
            out[i, target] += total


def boost(inputs: Array, targets: Array, features: Integers) -> list[Array]:
    """Fit the trees of one target.

    Parameters
    ----------
    inputs : array of shape (n, F)
    targets : array of shape (n,)
    features : array of int
        The columns of ``inputs`` the trees may use.

    Returns
    -------
    list of arrays of shape (nodes, 5)
        One per tree; the mean of the targets is a tree of its own.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    model: Any = HistGradientBoostingRegressor(
        max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=RATE, min_samples_leaf=SMALLEST_LEAF,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    with _pools().limit(limits=1, user_api="openmp"):  # threads that wait for a busy core burn ten times the work
        model.fit(inputs[:, features], targets)
    trees = [np.array([[0.0, 0.0, -1.0, -1.0, float(model._baseline_prediction.item())]])]
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(np.bool_)
        split = np.where(leaf, 0, features[np.where(leaf, 0, nodes["feature_idx"])])
        children = [np.where(leaf, -1.0, nodes[side]) for side in ("left", "right")]
        threshold = np.where(leaf, 0.0, np.clip(nodes["num_threshold"], -1e300, 1e300))
        trees.append(_in_order(np.column_stack([split, threshold, *children, nodes["value"]])))
    return trees


@cache
def _pools() -> Any:
    """The thread pools of the libraries that growing a tree has loaded: looking for them takes longer than a small tree."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _in_order(nodes: Array) -> Array:
    """The same tree with every child after its parent."""
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if nodes[node, 2] >= 0:
            waiting += [int(nodes[node, 3]), int(nodes[node, 2])]
    place = np.empty(len(nodes), dtype=np.int64)
    place[order] = np.arange(len(order))
    out = nodes[order]
    inner = out[:, 2] >= 0
    out[inner, 2:4] = place[out[inner, 2:4].astype(np.int64)]
    return np.asarray(out)


@dataclass(frozen=True)
class Forest:
    """The trees of several targets.

    Examples
    --------
    >>> x = np.arange(200.0)[:, None]
    >>> forest = Forest.of([boost(x, (x[:, 0] > 90.0) * 2.0, np.array([0])), []])
    >>> forest.predict(np.array([[10.0], [150.0]])).round(2).tolist()
    [[0.0, 0.0], [2.0, 0.0]]
    """

    nodes: Array  # (N, 5)
    roots: Array  # (trees,) first node of each tree
    first: Array  # (targets + 1,) first tree of each target

    @classmethod
    def of(cls, targets: list[list[Array]]) -> Forest:
        """Gather the trees of each target, none where there are none."""
        trees = [tree for target in targets for tree in target]
        sizes = [len(tree) for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)])[: len(trees)]
        moved = []
        for tree, root in zip(trees, roots, strict=True):
            shifted = tree.copy()
            shifted[:, 2:4] = np.where(tree[:, 2:4] >= 0, tree[:, 2:4] + root, -1.0)
            moved.append(shifted)
        nodes = np.concatenate(moved) if moved else np.zeros((0, COLUMNS))
        first = np.concatenate([[0], np.cumsum([len(target) for target in targets])])
        return cls(nodes, roots.astype(np.float64), first.astype(np.float64))

    def check(self, *, features: int, targets: int) -> bool:
        """Whether every index is one: of a feature, of a later node of the same tree, of a tree."""
        nodes, roots, first = self.nodes, self.roots, self.first
        whole = np.concatenate([nodes[:, [0, 2, 3]].ravel(), roots, first])
        if (
            nodes.ndim != 2
            or nodes.shape[1] != COLUMNS
            or (whole != np.floor(whole)).any()
            or len(first) != targets + 1
        ):
            return False
        ends = np.append(roots[1:], len(nodes))
        trees = first[0] == 0 and first[-1] == len(roots) and (np.diff(first) >= 0).all()
        starts = (len(roots) == 0) == (len(nodes) == 0) and (len(roots) == 0 or roots[0] == 0) and (roots < ends).all()
        if not trees or not starts:
            return False
        own = np.arange(len(nodes))
        end = ends[np.searchsorted(roots, own, side="right") - 1] if len(nodes) else own
        leaf = (nodes[:, 2] == -1) & (nodes[:, 3] == -1)
        later = (nodes[:, 2:4] > own[:, None]) & (nodes[:, 2:4] < end[:, None])
        good = (nodes[:, 0] >= 0) & (nodes[:, 0] < features) & (leaf | later.all(axis=1))
        return bool(good.all())

    @cached_property
    def columns(self) -> tuple[Integers, Integers, Integers, Array, Array, Integers, Integers]:
        """What the loop reads, laid out once; an empty tree fills up those of a target to a multiple of TOGETHER."""
        nodes, own = np.append(self.nodes, [[0.0, 0.0, -1.0, -1.0, 0.0]], axis=0), np.arange(len(self.nodes) + 1)
        feature, threshold, left, right, value = (np.ascontiguousarray(column) for column in nodes.T)
        left, right = (np.where(side < 0, own, side).astype(np.int64) for side in (left, right))
        trees = np.split(self.roots.astype(np.int64), self.first[1:-1].astype(np.int64))
        full = [np.append(some, np.full(-len(some) % TOGETHER, len(self.nodes))) for some in trees]
        first = np.cumsum([0, *map(len, full)])
        return feature.astype(np.int64), left, right, threshold, value, np.concatenate(full), first

    def predict(self, inputs: Array) -> Array:
        """Sums of the trees ``(n, targets)``."""
        out = np.zeros((len(inputs), len(self.first) - 1))
        walk(np.ascontiguousarray(inputs), out, *self.columns)
        return out
