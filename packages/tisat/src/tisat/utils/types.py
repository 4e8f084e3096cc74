"""Type aliases of the arrays and values that are passed between packages.

Shapes are given where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Singles: TypeAlias = npt.NDArray[np.float32]
Integers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
AnyFloats: TypeAlias = npt.NDArray[np.floating[Any]]  # float32 stays float32
AnyArray: TypeAlias = npt.NDArray[Any]  # of any type, as files hold them
JsonDict: TypeAlias = dict[
    str, Any
]  # a JSON object that we write; values that are read are checked where they are used
JsonMap: TypeAlias = Mapping[str, Any]  # a JSON object that is only read
Params: TypeAlias = dict[str, Any]  # parameters of an estimator or a function by name; what takes them checks them
Options: TypeAlias = Mapping[str, Any]  # the same, only read
Arrays: TypeAlias = dict[str, AnyArray]  # by name
Labels: TypeAlias = npt.ArrayLike  # 0 and 1 of one series, or a list of one for each
Scores: TypeAlias = npt.ArrayLike  # of one series, or a list of one for each
Stamps: TypeAlias = npt.ArrayLike | None  # of one series, or a list of one for each; None: one row is one time step
