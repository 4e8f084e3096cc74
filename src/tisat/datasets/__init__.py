"""Where series come from: the five benchmarks of the paper, your own files, and splits.

* :func:`load`, :func:`labels`, :func:`card`: SMD, MSL, SMAP, SWaT and PSM, from files as their publishers lay them out;
  :func:`load` also takes the path of your own file or folder, and :func:`read_series` reads every series in it.
* :func:`download`, :func:`verify`, :func:`convert`: get a data set, compare it with its card, rewrite it for quick loading.
* :func:`windows`, :func:`split_tail`: views, not copies.

A data set is never part of this package: it is read from a folder that the user names.
"""

from __future__ import annotations

from tisat.datasets.base import Blame, Dataset, Entity
from tisat.datasets.cache import download
from tisat.datasets.cards import NAMES, Card, card
from tisat.datasets.loading import convert, data_root, labels, load
from tisat.datasets.own import read_series
from tisat.datasets.splits import split_tail, windows
from tisat.datasets.verification import Finding, Verification, verify

__all__ = [
    "NAMES",
    "Blame",
    "Card",
    "Dataset",
    "Entity",
    "Finding",
    "Verification",
    "card",
    "convert",
    "data_root",
    "download",
    "labels",
    "load",
    "read_series",
    "split_tail",
    "verify",
    "windows",
]
