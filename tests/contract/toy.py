"""The detector of CONTRIBUTING.md: distance from the training mean, in training standard deviations."""

from tisat.base import Detector
from tisat.parameters import real


class Distance(Detector):
    """Largest distance from the training mean over the channels."""

    floor: float = real(1e-3, above=0.0, doc="Smallest spread of a channel.")

    def _fit(self, parts):
        import numpy as np

        rows = np.concatenate(parts)
        self.mean_ = rows.mean(axis=0)
        self.spread_ = np.maximum(rows.std(axis=0), self.floor)

    def _points(self, part):
        return abs((part - self.mean_) / self.spread_).max(axis=1, keepdims=True)

    def _context(self):
        return 0
