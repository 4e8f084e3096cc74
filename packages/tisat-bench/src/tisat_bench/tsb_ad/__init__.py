"""TSB-AD: its series, its protocol, and its published results beside a detector of one's own.

Liu, Paparrizos: The Elephant in the Room: Towards A Reliable Time-Series Anomaly Detection Benchmark, NeurIPS 2024. Start with
:func:`read_benchmark`, :func:`find_series` and :func:`compare_with_published`; ``tisat bench tsb-ad-m`` does all three.
"""

from tisat_bench.tsb_ad.comparison import Comparison, Standing, compare_with_published
from tisat_bench.tsb_ad.detectors import SCORERS, scores_of
from tisat_bench.tsb_ad.lists import Benchmark, ListedSeries, read_benchmark
from tisat_bench.tsb_ad.scoring import read_scores, vus_of
from tisat_bench.tsb_ad.series import FoundSeries, find_series

__all__ = [
    "SCORERS",
    "Benchmark",
    "Comparison",
    "FoundSeries",
    "ListedSeries",
    "Standing",
    "compare_with_published",
    "find_series",
    "read_benchmark",
    "read_scores",
    "scores_of",
    "vus_of",
]
