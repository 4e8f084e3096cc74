"""IsolationForest: how few random cuts set a window apart from the normal ones.

scikit-learn grows the trees. Their nodes are kept as plain arrays and walked by a compiled loop, so that a fitted
forest can be saved without pickle and scores faster; the scores are scikit-learn's to the last bit. It looks at one
value at a time and does not know relations between channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tisat.detectors._windows import WindowedDetector, parts_longer_than, training_windows
from tisat.detectors.base import Array, Traits
from tisat.errors import ArtefactError
from tisat.utils.compiled import compiled
from tisat.utils.parameters import integer, learned
from tisat.utils.types import Singles

MAX_TRAINING_WINDOWS = 100_000  # each tree draws its rows from these; at 256 rows a tree more would change nothing


@compiled()
def _path_lengths(
    rows: Singles,
    roots: npt.NDArray[np.int32],
    feature: npt.NDArray[np.int32],
    threshold: Array,
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    length: Array,
) -> Array:  # pragma: no cover - compiled
    """Sum over the trees of the path length of each row; a leaf has no left child."""
    total = np.zeros(len(rows))
    for i in range(len(rows)):
        for root in roots:
            node = root
            while left[node] >= 0:
                node = left[node] if rows[i, feature[node]] <= threshold[node] else right[node]
            total[i] += length[node]
    return total


class IsolationForest(WindowedDetector):
    """Isolation forest on flattened windows of raw values.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.random.default_rng(0).standard_normal((500, 2))
    >>> detector = IsolationForest(window=1, n_estimators=20).fit(train)
    >>> detector.decision_function([[0.0, 0.0], [6.0, 6.0]]).round(2).tolist()
    [0.41, 0.77]

    References
    ----------
    Liu, Ting, Zhou: Isolation forest, ICDM 2008. Scores are those of its equation 2, in (0, 1).
    """

    # exact_together: every row walks the trees by itself
    traits: ClassVar[Traits] = Traits(crossfit=5, exact_together=True)

    n_estimators: int = integer(100, at_least=1, doc="Trees.")
    max_samples: int = integer(256, at_least=2, doc="Windows each tree is grown on.")
    random_state: int = integer(0, at_least=0, at_most=2**32 - 1, doc="The same seed gives the same forest.")

    roots_: npt.NDArray[np.int32] = learned("trees", kind="i", low=0, high="nodes")  # (trees,) node number of each root
    feature_: npt.NDArray[np.int32] = learned(
        "nodes", kind="i", high="window * C"
    )  # (nodes,) which value of the flat window is cut
    cut_: Array = learned("nodes")  # (nodes,)
    left_: npt.NDArray[np.int32] = learned(
        "nodes", kind="i", low=-1, high="nodes"
    )  # (nodes,) child where value <= threshold; -1 at a leaf
    right_: npt.NDArray[np.int32] = learned("nodes", kind="i", low=-1, high="nodes")  # (nodes,)
    length_: Array = learned("nodes")  # (nodes,) path length credited to a row that ends here
    normalisation_: float = learned()  # expected sum of path lengths

    def _check_learned(self) -> None:
        node = np.arange(len(self.left_))
        inner = self.left_ >= 0
        down = (self.left_ > node) & (self.right_ > node) & (self.feature_ >= 0)
        if len(node) == 0 or not np.all(np.where(inner, down, self.right_ < 0)):
            raise ArtefactError("The trees of IsolationForest must lead from every node to later ones, or end there.")

    def _fit(self, parts: Sequence[Array]) -> None:
        from sklearn.ensemble import IsolationForest as Forest

        whose = type(self).__name__
        long = parts_longer_than(self._context(), parts, whose=whose)
        windows = training_windows(long, window=self.window, limit=MAX_TRAINING_WINDOWS)
        flat = windows.reshape(len(windows), -1).astype(np.float32)
        forest = Forest(
            n_estimators=self.n_estimators,
            max_samples=min(self.max_samples, len(flat)),
            random_state=self.random_state,
        ).fit(flat)
        self._keep_trees([tree.tree_ for tree in forest.estimators_], forest.max_samples_)

    def _keep_trees(self, trees: Sequence[Any], max_samples: int) -> None:
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.roots_ = roots.astype(np.int32)
        self.feature_ = np.concatenate([tree.feature for tree in trees]).astype(np.int32)
        self.cut_ = np.concatenate([tree.threshold for tree in trees])
        shift = np.repeat(roots, sizes)  # node numbers of one tree become node numbers of the forest
        left = np.concatenate([tree.children_left for tree in trees])
        right = np.concatenate([tree.children_right for tree in trees])
        self.left_ = np.where(left >= 0, left + shift, -1).astype(np.int32)
        self.right_ = np.where(right >= 0, right + shift, -1).astype(np.int32)
        depths = np.concatenate([tree.compute_node_depths() for tree in trees])
        crowd = np.concatenate([tree.n_node_samples for tree in trees])
        self.length_ = depths + average_path_length(crowd) - 1.0  # depths count nodes, path lengths count edges
        self.normalisation_ = float(len(trees) * average_path_length(np.array([max_samples]))[0])

    def _window_points(self, windows: Array) -> Array:
        flat = windows.reshape(len(windows), -1).astype(np.float32)
        total = _path_lengths(flat, self.roots_, self.feature_, self.cut_, self.left_, self.right_, self.length_)
        return np.asarray(2.0 ** -(total / self.normalisation_))[:, None]

    @classmethod
    def _test_params(cls) -> dict[str, int]:
        return {"window": 3, "n_estimators": 10}


def average_path_length(n: npt.NDArray[np.integer[Any]]) -> Array:
    """Mean path length of an unsuccessful search among ``n`` rows, c(n) in equation 1 of the paper.

    Examples
    --------
    >>> average_path_length(np.array([1, 2, 256])).round(3).tolist()
    [0.0, 1.0, 10.245]
    """
    many = np.maximum(n, 3).astype(np.float64)
    length = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.asarray(np.where(n <= 1, 0.0, np.where(n == 2, 1.0, length)))
