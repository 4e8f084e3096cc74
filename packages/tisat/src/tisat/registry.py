"""The only list of detectors: name -> "module:Class", imported when asked for.

A saved model names its detector here and nowhere else: loading a file can only ever build a class of this table, so a
file from an untrusted source cannot make the package import or run anything of its own.

To add a detector, write one file in ``tisat/detectors/`` and one line here. This module does not import any of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from tisat.errors import ArtefactError, ParameterError
from tisat.utils.near_names import meant

if TYPE_CHECKING:
    from tisat.detectors.base import Detector

# One line for each detector, in the order of the documentation: the default, baseline scores, simple, classical, forecasters, deep.
DETECTORS: dict[str, str] = {
    "prism": "tisat.detectors.prism.detector:Prism",
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


DEFAULT = "prism"  # what users meet first

# What other packages and papers call them; only for the question "did you mean".
ALIASES = {
    "default": "prism",
    "iforest": "isolation-forest", "forest": "isolation-forest",
    "knn": "nearest-neighbors", "kneighbors": "nearest-neighbors", "k-nearest-neighbours": "nearest-neighbors", "kdtree": "nearest-neighbors",
    "local-outlier-factor": "lof", "one-class-svm": "ocsvm", "svm": "ocsvm", "copod": "ecod",
    "mcd": "mahalanobis", "elliptic-envelope": "mahalanobis", "covariance": "mahalanobis", "gaussian": "mahalanobis",
    "var": "vector-autoregression", "auto-arima": "arima", "sarima": "arima", "prophet": "arima",
    "sr": "spectral-residual", "stumpy": "matrix-profile", "stump": "matrix-profile", "stomp": "matrix-profile", "damp": "matrix-profile",
    "zscore": "ewma", "z-score": "ewma", "moving-average": "ewma", "persistence": "last-value", "naive": "last-value", "random": "random-guess",
    "ridge": "linear", "dlinear": "linear", "nlinear": "linear-last",
    "hbos": "adapter", "pyod": "adapter", "sklearn": "adapter", "gmm": "adapter", "autoencoder": "lstm-vae", "vae": "lstm-vae",
    "svdd": "deep-svdd", "gan": "beatgan", "omni": "omni-anomaly", "transformer": "tisat", "informer": "tisat",
    "ensemble": "combine",
}  # fmt: skip


ENTRY_POINTS = "tisat.detectors"  # the group under which an installed package offers detectors: name = "module:Class"
IMPORTS = (
    "TISAT_IMPORT"  # detectors of your own, "module:Class" with spaces between; what --import says, for child processes
)


def names() -> list[str]:
    """Every registered name, in the order of the table.

    Then those of installed packages and of ``TISAT_IMPORT``.
    """
    _look_outside()
    return list(DETECTORS)


@cache
def _look_outside() -> None:
    """Add what installed packages offer and what ``TISAT_IMPORT`` names, once.

    A name of the table is never replaced.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        DETECTORS.setdefault(point.name, point.value)
    for target in imported():
        add(target)


def imported() -> list[str]:
    """What ``--import`` and ``TISAT_IMPORT`` name: ``name=module:Class`` each."""
    return os.environ.get(IMPORTS, "").split()


def _knows(name: str) -> bool:
    if name not in DETECTORS:
        _look_outside()
    return name in DETECTORS


def add(target: str) -> str:
    """Register the class that ``"module:Class"`` or ``"name=module:Class"`` means, and give back its name.

    Without a name it is that of the class in small letters: ``MyDetector`` is ``my-detector``.

    Examples
    --------
    >>> add("tisat.detectors.random_guess:RandomGuess")
    'random-guess'
    """
    label, _, where = target.rpartition("=")
    module, colon, attribute = where.partition(":")
    if not (colon and module and attribute.isidentifier()):
        raise ParameterError(
            f"A detector of your own must be given as module:Class, or name=module:Class. Got {target!r} instead."
        )
    try:
        cls: type[Detector] = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise ParameterError(f"The module of {target!r} must be found from here. {error}.") from None
    except AttributeError:
        raise ParameterError(f"The module {module!r} must have the class {attribute!r}. It has not.") from None
    if not (isinstance(cls, type) and hasattr(cls, "traits") and hasattr(cls, "decision_function")):
        raise ParameterError(f"{target!r} must be a class that derives from tisat.Detector. Got {cls!r} instead.")
    target = f"{cls.__module__}:{cls.__qualname__}"
    known = next((name for name, other in DETECTORS.items() if other == target), None)
    name = label or known or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", "-", attribute).lower()
    if known != name:
        register(name, cls)
    return name


def resolve(name: str) -> type[Detector]:
    """The detector class called ``name``; imports its module.

    Examples
    --------
    >>> resolve("random-guess").__name__
    'RandomGuess'
    """
    if not _knows(name):
        raise ParameterError(
            f"The detector must be one that `tisat detectors` lists: {', '.join([*DETECTORS][:4])} and {len(DETECTORS) - 4} more. Got {name!r} "
            f"instead.{meant(name, DETECTORS, ALIASES) or ' One of your own is made known with --import module:Class, or tisat.registry.register.'}"
        )
    module, _, attribute = DETECTORS[name].partition(":")
    found: type[Detector] = getattr(import_module(module), attribute)
    return found


def check_detector(detector: object, *, whose: str) -> None:
    """Refuse what is no detector, with what makes one of it.

    Parameters
    ----------
    detector : object
        A detector has ``fit``, ``decision_function`` and ``traits``.
    whose : str
        Whose parameter it is.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> check_detector(Ridge(), whose="compare")
    Traceback (most recent call last):
        ...
    tisat.errors.ParameterError: The detector of compare must be a name that `tisat detectors` lists, or a detector of tisat. Got Ridge() instead; tisat.detectors.from_forecaster(Ridge()) makes one.
    """
    if hasattr(detector, "traits") and hasattr(detector, "decision_function") and not isinstance(detector, type):
        return
    kind = detector.__name__ if isinstance(detector, type) else type(detector).__name__
    what = f"the class {kind}" if isinstance(detector, type) else repr(detector)
    if isinstance(detector, type):
        hint = f"give an object of it, such as {kind}()"
    elif hasattr(detector, "detector") and hasattr(detector, "budget"):
        what, hint = f"a {kind}", "give its detector, and its settings to all: watch.detector"
    elif hasattr(detector, "steps") and hasattr(detector, "prepare"):
        what, hint = f"a {kind}", "give its detector and rows that went through its transformers"
    elif hasattr(detector, "decision_function") or hasattr(detector, "score_samples"):
        hint = f"tisat.detectors.from_sklearn({kind}()) makes one"
    elif hasattr(detector, "predict"):
        hint = f"tisat.detectors.from_forecaster({kind}()) makes one"
    else:
        hint = "tisat.detectors.from_function, from_sklearn, from_pyod and from_forecaster make one"
    raise ParameterError(
        f"The detector of {whose} must be a name that `tisat detectors` lists, or a detector of tisat. Got {what} instead; {hint}."
    )


def is_registered(cls: type[object]) -> bool:
    """Whether ``cls`` has a name here."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    if path not in DETECTORS.values():
        _look_outside()
    return path in DETECTORS.values()


def name_of(cls: type[object]) -> str:
    """The name under which ``cls`` is registered."""
    if is_registered(cls):
        return next(name for name, target in DETECTORS.items() if target == f"{cls.__module__}:{cls.__qualname__}")
    raise ParameterError(
        f"The class {cls.__qualname__} must be registered before it can be saved or loaded. "
        f"Call tisat.registry.register(name, {cls.__qualname__}) first."
    )


def register(name: str, cls: type[Detector]) -> None:
    """Add a detector of your own, so that it can be saved, loaded, used by name and run through the contract tests.

    The class must be importable: defined at the top of a module, not inside a function.
    """
    target = f"{cls.__module__}:{cls.__qualname__}"
    if DETECTORS.get(name, target) != target:
        raise ParameterError(f"The detector name {name!r} must be free. It already stands for {DETECTORS[name]}.")
    if "<locals>" in target:
        raise ParameterError(f"The class {cls.__qualname__} must be importable: define it at the top of a module.")
    DETECTORS[name] = target


def named_in(document: Mapping[str, object], *, path: object) -> type[Detector]:
    """The registered class whose fitted detector a model file holds.

    Others are refused.
    """
    name = document.get("detector")
    if not isinstance(name, str) or not _knows(name):
        raise ArtefactError(
            f"The model file {str(path)!r} must hold a registered detector. Got {name!r} instead; a detector of your own is told with --import module:Class."
        )
    return resolve(name)
