"""Series to work with: your own files, generated plants with known faults, and splits.

* :func:`read_series`: every series in a file, a folder or a pattern;
* :func:`~tisat.datasets.synthetic.make_plant`: a generated plant with labelled faults;
* :func:`windows`, :func:`split_tail`: views, not copies.

The published benchmarks (SMD, MSL, SMAP, SWaT, PSM) are in the package ``tisat-bench``.
"""

from __future__ import annotations

from tisat.datasets.splits import split_tail, windows
from tisat.datasets.user_files import read_series

__all__ = ["read_series", "split_tail", "windows"]
