"""Type aliases of the arrays and values that are passed between packages; shapes are given where they are used."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Singles: TypeAlias = npt.NDArray[np.float32]
Integers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
AnyFloats: TypeAlias = npt.NDArray[np.floating[Any]]  # float32 stays float32
AnyArray: TypeAlias = npt.NDArray[Any]  # of any type, as files hold them
JsonDict: TypeAlias = dict[str, Any]  # a JSON object: values are checked where they are read
Arrays: TypeAlias = dict[str, AnyArray]  # by name
