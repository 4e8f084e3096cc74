"""Data sets of two splits: the five benchmarks of the paper, and your own files as one.

* :func:`load`, :func:`labels`, :func:`card`: SMD, MSL, SMAP, SWaT and PSM, from files as their publishers lay them out;
  :func:`load` also takes the path of your own file or folder.
* :func:`download`, :func:`verify`, :func:`convert`: get a data set, compare it with its card, rewrite it for quick loading.

A data set is never part of this package: it is read from a folder that the user names.
"""

from __future__ import annotations

from tisat_bench.datasets.base import Attribution, Dataset, Entity
from tisat_bench.datasets.cards import NAMES, Card, card
from tisat_bench.datasets.downloads import download
from tisat_bench.datasets.loading import data_root, labels, load
from tisat_bench.datasets.verification import Finding, Verification, verify

__all__ = [
    "NAMES",
    "Attribution",
    "Card",
    "Dataset",
    "Entity",
    "Finding",
    "Verification",
    "card",
    "data_root",
    "download",
    "labels",
    "load",
    "verify",
]
