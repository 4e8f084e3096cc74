"""Series -> scores. One file for each detector.

:mod:`tisat.registry` is the only list.

Every detector is fitted on normal data and gives, for each row, a score: higher = more anomalous, NaN while it
warms up, never depending on later rows. ``from tisat.detectors import RandomGuess`` imports only that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tisat import registry
from tisat.detectors.adapting import adapt
from tisat.detectors.base import Detector, Traits
from tisat.detectors.loading import load
from tisat.utils.lazy import lazily

if TYPE_CHECKING:  # for editors and type checkers; a test compares it with the registry
    from tisat.detectors.adapter import Adapter as Adapter
    from tisat.detectors.adapter import from_pyod as from_pyod
    from tisat.detectors.adapter import from_sklearn as from_sklearn
    from tisat.detectors.anomaly_transformer import AnomalyTransformer as AnomalyTransformer
    from tisat.detectors.arima import ARIMA as ARIMA
    from tisat.detectors.beatgan import BeatGAN as BeatGAN
    from tisat.detectors.combine import Combine as Combine
    from tisat.detectors.dagmm import DAGMM as DAGMM
    from tisat.detectors.deep_svdd import DeepSVDD as DeepSVDD
    from tisat.detectors.deepant import DeepAnT as DeepAnT
    from tisat.detectors.ecod import Ecod as Ecod
    from tisat.detectors.ewma import Ewma as Ewma
    from tisat.detectors.forecaster import from_forecaster as from_forecaster
    from tisat.detectors.function import from_function as from_function
    from tisat.detectors.interfusion import InterFusion as InterFusion
    from tisat.detectors.isolation_forest import IsolationForest as IsolationForest
    from tisat.detectors.last_value import LastValue as LastValue
    from tisat.detectors.linear import Linear as Linear
    from tisat.detectors.linear import LinearLast as LinearLast
    from tisat.detectors.linear import LinearMean as LinearMean
    from tisat.detectors.lof import LOF as LOF
    from tisat.detectors.lstm import LSTM as LSTM
    from tisat.detectors.lstm_vae import LSTMVAE as LSTMVAE
    from tisat.detectors.mahalanobis import Mahalanobis as Mahalanobis
    from tisat.detectors.matrix_profile import MatrixProfile as MatrixProfile
    from tisat.detectors.nearest_neighbors import NearestNeighbors as NearestNeighbors
    from tisat.detectors.ocsvm import OCSVM as OCSVM
    from tisat.detectors.omni_anomaly import OmniAnomaly as OmniAnomaly
    from tisat.detectors.pca import PCA as PCA
    from tisat.detectors.prism.detector import Prism as Prism
    from tisat.detectors.random_guess import RandomGuess as RandomGuess
    from tisat.detectors.spectral_residual import SpectralResidual as SpectralResidual
    from tisat.detectors.thoc import THOC as THOC
    from tisat.detectors.tisat import TiSAT as TiSAT
    from tisat.detectors.vector_autoregression import VectorAutoregression as VectorAutoregression

_HOMES: dict[str, list[str]] = {
    "adapter": ["from_pyod", "from_sklearn"],
    "function": ["from_function"],
    "forecaster": ["from_forecaster"],
}
for _target in registry.DETECTORS.values():
    _module, _, _class = _target.partition(":")
    if _module.startswith(f"{__name__}."):
        _HOMES.setdefault(_module.removeprefix(f"{__name__}."), []).append(_class)

_NAMES, __getattr__, __dir__ = lazily(__name__, _HOMES)
__all__ = ["Detector", "Traits", "adapt", "load", "make", *_NAMES]


def make(name: str, **params: object) -> Detector:
    """A detector by its registered name.

    Parameters
    ----------
    name : str
        A name of :func:`tisat.registry.names`.
    params : object
        Parameters of the detector.

    Returns
    -------
    Detector
        An unfitted detector.

    Examples
    --------
    >>> make("random-guess", random_state=3)
    RandomGuess(random_state=3)
    """
    detector: Detector = registry.resolve(name)(**params)
    return detector
