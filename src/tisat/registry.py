"""The only list of detectors: name -> "module:Class", imported when asked for.

A saved model names its detector here and nowhere else: loading a file can only ever build a class of this table, so a
file from a stranger cannot make the package import or run anything of its own.

To add a detector, write one file in ``tisat/detectors/`` and one line here. This module does not import any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tisat.errors import ArtefactError, ParameterError

# One line a detector, in the order of the documentation: the default, floors, simple, classical, forecasters, deep.
DETECTORS: dict[str, str] = {
    "prism": "tisat.detectors.prism:Prism",
    "random-guess": "tisat.detectors.random_guess:RandomGuess",
    "last-value": "tisat.detectors.last_value:LastValue",
    "ewma": "tisat.detectors.ewma:Ewma",
    "linear": "tisat.detectors.linear:Linear",
    "linear-last": "tisat.detectors.linear:LinearLast",
    "linear-mean": "tisat.detectors.linear:LinearMean",
    "vector-autoregression": "tisat.detectors.vector_autoregression:VectorAutoregression",
    "arima": "tisat.detectors.arima:ARIMA",
    "lstm": "tisat.detectors.lstm:LSTM",
    "deepant": "tisat.detectors.deepant:DeepAnT",
    "pca": "tisat.detectors.pca:PCA",
    "mahalanobis": "tisat.detectors.mahalanobis:Mahalanobis",
    "nearest-neighbors": "tisat.detectors.nearest_neighbors:NearestNeighbors",
    "ocsvm": "tisat.detectors.ocsvm:OCSVM",
    "lof": "tisat.detectors.lof:LOF",
    "isolation-forest": "tisat.detectors.isolation_forest:IsolationForest",
    "ecod": "tisat.detectors.ecod:Ecod",
    "spectral-residual": "tisat.detectors.spectral_residual:SpectralResidual",
    "matrix-profile": "tisat.detectors.matrix_profile:MatrixProfile",
    "adapter": "tisat.detectors.adapter:Adapter",
    "combine": "tisat.detectors.combine:Combine",
    "tisat": "tisat.detectors.tisat:TiSAT",
    "deep-svdd": "tisat.detectors.deep_svdd:DeepSVDD",
    "dagmm": "tisat.detectors.dagmm:DAGMM",
    "lstm-vae": "tisat.detectors.lstm_vae:LSTMVAE",
    "beatgan": "tisat.detectors.beatgan:BeatGAN",
    "omni-anomaly": "tisat.detectors.omni_anomaly:OmniAnomaly",
    "interfusion": "tisat.detectors.interfusion:InterFusion",
    "thoc": "tisat.detectors.thoc:THOC",
    "anomaly-transformer": "tisat.detectors.anomaly_transformer:AnomalyTransformer",
}


DEFAULT = "prism" if "prism" in DETECTORS else "linear-last"  # what users meet first


def names() -> list[str]:
    """Every registered name, in the order of the table."""
    return list(DETECTORS)


def resolve(name: str) -> type[Any]:
    """The detector class called ``name``; imports its module.

    Examples
    --------
    >>> resolve("random-guess").__name__
    'RandomGuess'
    """
    if name not in DETECTORS:
        raise ParameterError(f"The detector must be one of {', '.join(DETECTORS)}. Got {name!r} instead.")
    module, _, attribute = DETECTORS[name].partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found


def name_of(cls: type[Any]) -> str:
    """The name under which ``cls`` is registered."""
    wanted = f"{cls.__module__}:{cls.__qualname__}"
    for name, target in DETECTORS.items():
        if target == wanted:
            return name
    raise ParameterError(
        f"The class {cls.__qualname__} must be registered before it can be saved or loaded. "
        f"Call tisat.registry.register(name, {cls.__qualname__}) first."
    )


def register(name: str, cls: type[Any]) -> None:
    """Add a detector of your own, so that it can be saved, loaded, used by name and run through the laws.

    The class must be importable: defined at the top of a module, not inside a function.
    """
    target = f"{cls.__module__}:{cls.__qualname__}"
    if DETECTORS.get(name, target) != target:
        raise ParameterError(f"The detector name {name!r} must be free. It already stands for {DETECTORS[name]}.")
    if "<locals>" in target:
        raise ParameterError(f"The class {cls.__qualname__} must be importable: define it at the top of a module.")
    DETECTORS[name] = target


def from_document(document: Mapping[str, Any], tensors: Mapping[str, Any], *, path: object) -> Any:
    """The fitted detector whose file holds these; only registered classes are made."""
    name = document.get("detector")
    if not isinstance(name, str) or name not in DETECTORS:
        raise ArtefactError(f"The model file {str(path)!r} must hold a registered detector. Got {name!r} instead.")
    return resolve(name).from_document(document, tensors, path=path)
