"""Where series come from: the five benchmarks of the paper, your own files, scalers and splits.

* :func:`load`, :func:`labels`, :func:`card`: SMD, MSL, SMAP, SWaT and PSM, from files as their publishers lay them out.

A data set is never part of this package: it is read from a folder that the user names.
"""

from __future__ import annotations

from tisat.datasets.base import Blame, Dataset, Entity
from tisat.datasets.card import NAMES, Card, card
from tisat.datasets.loading import convert, data_root, labels, load

__all__ = ["NAMES", "Blame", "Card", "Dataset", "Entity", "card", "convert", "data_root", "labels", "load"]
