"""Adapter: any scikit-learn or PyOD outlier estimator as a detector, in one line.

    detector = from_sklearn(GaussianMixture(5)).fit(series)
    detector = from_pyod(HBOS()).fit(series)

The estimator sees flattened windows (of one row unless told otherwise) of standardised channels, like the classical
detectors here. Two things are taken care of that a plain call does not:

* **polarity**: scikit-learn's scores say how normal a row is, PyOD's how anomalous; here higher is more anomalous;
* **causality**: some estimators rank the rows of a batch among themselves (PyOD's ECOD and COPOD). That is found out at
  fit, and each row is then scored alone: slower, and a warning says so.

A fitted adapter is saved as the estimator's name, its parameters and the training windows, and fitted again when read:
possible for the estimators listed in ``ESTIMATORS`` with plain parameters, refused in words for any other. What the
estimator computes is its own affair.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

from tisat.detectors._windows import StandardWindowDetector, training_windows
from tisat.detectors.base import Array, Detector
from tisat.errors import ArtefactError, ParameterError
from tisat.gap_filling import HUGE
from tisat.utils.extras import require
from tisat.utils.parameters import flag, integer, learned, value
from tisat.utils.types import Arrays, JsonDict, Options
from tisat.utils.validation import check_choice

PYOD = ("ABOD", "CBLOF", "COPOD", "ECOD", "GMM", "HBOS", "IForest", "INNE", "KDE", "KNN", "LODA", "LOF", "MCD", "OCSVM", "PCA")  # fmt: skip
# The only classes a file can name: reading a model can build these and nothing else.
ESTIMATORS: dict[str, str] = {
    "sklearn:EllipticEnvelope": "sklearn.covariance:EllipticEnvelope",
    "sklearn:GaussianMixture": "sklearn.mixture:GaussianMixture",
    "sklearn:IsolationForest": "sklearn.ensemble:IsolationForest",
    "sklearn:KernelDensity": "sklearn.neighbors:KernelDensity",
    "sklearn:LocalOutlierFactor": "sklearn.neighbors:LocalOutlierFactor",
    "sklearn:OneClassSVM": "sklearn.svm:OneClassSVM",
    **{f"pyod:{name}": f"pyod.models.{name.lower()}:{name}" for name in PYOD},
}
PROBE = 8  # training windows scored together and alone, to find out whether a batch matters
LARGEST = 1e300  # a score beyond is as good as infinite


def _plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


class Adapter(StandardWindowDetector):
    """A scikit-learn or PyOD outlier estimator under the contract of every detector.

    Examples
    --------
    >>> import numpy as np
    >>> train = np.random.default_rng(0).standard_normal((500, 2))
    >>> detector = Adapter("sklearn:GaussianMixture", params={"n_components": 2}).fit(train)
    >>> scores = detector.decision_function([[0.0, 0.0], [6.0, 6.0]])
    >>> bool(scores[0] < detector.normal_level() < scores[1])
    True

    Notes
    -----
    The score is the estimator's own: minus ``score_samples`` or ``decision_function`` of scikit-learn, PyOD's
    ``decision_function`` as it is. Where an estimator ranks the rows of a batch among themselves, as PyOD's ECOD and COPOD
    do, each row is scored alone, with a warning. A file holds the estimator's name, its parameters and its training
    windows; reading it fits again. Pedregosa et al.: Scikit-learn, JMLR 2011; Zhao, Nasrullah, Li: PyOD, JMLR 2019.
    """

    estimator: object = value(
        "sklearn:GaussianMixture",
        doc="A name of ESTIMATORS, such as 'pyod:HBOS', or an unfitted estimator object of either library, or with the methods of "
        "either. Objects work everywhere but cannot be saved; from_sklearn and from_pyod turn them into names where they can.",
    )
    params: Options | None = value(
        None, none="its defaults", doc="The estimator's parameters, where it is given by name."
    )
    window: int = 1
    standardise: bool = flag(True, doc="Whether channels are centred and scaled by the training rows first.")
    max_windows: int | None = integer(
        20_000, at_least=2, none="all of them", doc="Training windows given to the estimator, spread evenly."
    )
    random_state: int = integer(
        0, at_least=0, at_most=2**32 - 1, doc="Given to an estimator that has a random_state and was not told one."
    )

    training_: Array = learned("S, window * C")  # (n, d) windows the estimator was fitted on
    one_by_one_: bool = learned()  # the estimator's scores depend on the other rows of a batch
    _fitted: object = learned()  # the estimator, fitted; made again from training_ when a file is read

    def __init__(
        self,
        estimator: object = "sklearn:GaussianMixture",
        *,
        params: Options | None = None,
        window: int = 1,
        standardise: bool = True,
        max_windows: int | None = 20_000,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.params = params
        self.window = window
        self.standardise = standardise
        self.max_windows = max_windows
        self.random_state = random_state

    def _build(self) -> Any:
        """A fresh, unfitted estimator, seeded."""
        if isinstance(self.estimator, str):
            name = check_choice(self.estimator, "estimator", "Adapter", choices=ESTIMATORS)
            module, _, attribute = ESTIMATORS[name].partition(":")
            require(module.partition(".")[0], whose=f"Adapter({name!r})")
            estimator = getattr(import_module(module), attribute)(**dict(self.params or {}))
        else:
            if self.params:
                raise ParameterError("The 'params' parameter of Adapter must be None where 'estimator' is an object.")
            _check_cloneable(self.estimator, "Adapter")
            estimator = clone(self.estimator)
        if "random_state" in estimator.get_params() and estimator.get_params()["random_state"] is None:
            estimator.set_params(random_state=self.random_state)
        elif not hasattr(estimator, "random_state") or estimator.random_state is None:
            estimator.random_state = (
                self.random_state
            )  # scikit-learn's OneClassSVM draws, though it has no such parameter
        if not (hasattr(estimator, "score_samples") or hasattr(estimator, "decision_function")):
            raise ParameterError(
                f"The estimator of Adapter must have score_samples or decision_function after fit "
                f"(LocalOutlierFactor: novelty=True; what forecasts goes to from_forecaster). Got {estimator!r} instead."
            )
        return estimator

    @staticmethod
    def _of_pyod(estimator: object) -> bool:
        return any(base.__module__.partition(".")[0] == "pyod" for base in type(estimator).__mro__)

    def _anomaly(self, rows: Array) -> Array:
        """The estimator's opinion of each row, higher = more anomalous."""
        rows = np.nan_to_num(rows, nan=0.0, posinf=HUGE, neginf=-HUGE)  # estimators refuse what is not finite
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks of the estimator about its numbers
            fitted = self._ready()
            if self._of_pyod(fitted):
                scores = np.asarray(fitted.decision_function(rows), dtype=np.float64)
            elif hasattr(fitted, "score_samples"):
                scores = -np.asarray(fitted.score_samples(rows), dtype=np.float64)
            else:
                scores = -np.asarray(fitted.decision_function(rows), dtype=np.float64)
        return np.nan_to_num(scores.ravel(), nan=LARGEST, posinf=LARGEST, neginf=-LARGEST)

    def _ready(self) -> Any:
        """The fitted estimator.

        One that came from a file is fitted again when it is first asked, never while a file is read.
        """
        if not hasattr(self, "_fitted"):
            try:
                self._learn()
            except (
                Exception
            ) as error:  # rows that fit never saw: whatever the estimator makes of them, one sentence comes out
                raise ArtefactError(
                    f"The rows a file keeps for {self.estimator!r} must be ones it can learn from. It says: {str(error)[:200]}. "
                    "Fit the model again."
                ) from None
        return self._fitted

    def _learn(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._fitted = self._build().fit(self.training_)

    def _standardise(self, rows: Array) -> Array:
        return super()._standardise(rows) if self.standardise else rows

    def _fit_windows(self, parts: Sequence[Array]) -> None:
        windows = training_windows(parts, window=self.window, limit=self.max_windows)
        self.training_ = windows.reshape(len(windows), -1)
        self._learn()
        probe = self.training_[np.linspace(0, len(self.training_) - 1, PROBE).astype(np.int64)]
        together = self._anomaly(probe)
        alone = np.concatenate([self._anomaly(row[None]) for row in probe])
        self.one_by_one_ = not np.allclose(together, alone, rtol=1e-6, atol=1e-9)
        if self.one_by_one_:
            warnings.warn(
                f"The scores of {type(self._fitted).__name__} depend on the other rows of a batch; "
                f"each row is scored alone, so that no score depends on later rows. This is slow.",
                stacklevel=4,
            )

    def _score_windows(self, flat: Array) -> Array:
        if self.one_by_one_:
            return np.concatenate([self._anomaly(row[None]) for row in flat])[:, None]
        return self._anomaly(flat)[:, None]

    def _state(self) -> tuple[JsonDict, Arrays]:
        if not isinstance(self.estimator, str) or not all(map(_plain, dict(self.params or {}).values())):
            raise ArtefactError(
                f"An Adapter can be saved where its estimator is one of {', '.join(ESTIMATORS)}, with plain parameters. "
                f"Got {self.estimator!r} instead."
            )
        return super()._state()

    def _check_learned(self) -> None:
        if len(self.training_) < 2:
            raise ArtefactError("The rows an Adapter was fitted on must be at least 2. Got fewer.")
        self._build()  # refuses a name or parameters it does not know; fitting waits for the first row that is scored


def _check_cloneable(estimator: object, whose: str) -> None:
    """Refuse an estimator that scikit-learn cannot copy."""
    if not hasattr(estimator, "get_params"):
        raise ParameterError(
            f"The estimator of {whose} must have get_params. Got {estimator!r} instead; derive its class from "
            "sklearn.base.BaseEstimator, or give a function: tisat.detectors.from_function."
        )


def _adapted(estimator: Any, library: str, options: Options) -> Adapter:
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        what = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
        raise ParameterError(f"The estimator given to from_{library} must be an object with fit. Got {what} instead.")
    _check_cloneable(estimator, f"from_{library}")
    cls = type(estimator)
    if isinstance(estimator, Detector):
        raise ParameterError(
            f"The estimator given to from_{library} must be one of another package. Got {estimator!r}, a detector of tisat: give it as it is."
        )
    name = f"{library}:{cls.__name__}"
    if name in ESTIMATORS and cls.__module__.partition(".")[0] == library:
        defaults = cls().get_params()
        changed = {key: value for key, value in estimator.get_params().items() if repr(value) != repr(defaults[key])}
        if all(map(_plain, changed.values())):
            return Adapter(name, params=changed or None, **options)
    return Adapter(estimator, **options)


def from_sklearn(estimator: object, **options: object) -> Adapter:
    """A detector from an unfitted scikit-learn outlier or density estimator.

    ``options`` are those of :class:`Adapter`.

    Parameters
    ----------
    estimator : object
        Unfitted.
    options : object
        Parameters of the adapter.

    Returns
    -------
    Adapter
        A detector.

    Examples
    --------
    >>> from sklearn.covariance import EllipticEnvelope
    >>> from_sklearn(EllipticEnvelope(support_fraction=0.9), window=2)
    Adapter(estimator='sklearn:EllipticEnvelope', params={'support_fraction': 0.9}, window=2)
    """
    return _adapted(estimator, "sklearn", options)


def from_pyod(estimator: object, **options: object) -> Adapter:
    """A detector from an unfitted PyOD estimator.

    ``options`` are those of :class:`Adapter`.

    Its ``contamination`` is not used: alarm thresholds come from a false-alarm budget.

    Parameters
    ----------
    estimator : object
        Unfitted.
    options : object
        Parameters of the adapter.

    Returns
    -------
    Adapter
        A detector.

    Examples
    --------
    >>> from pyod.models.hbos import HBOS  # doctest: +SKIP
    >>> from_pyod(HBOS()).fit(rows)  # doctest: +SKIP
    """
    return _adapted(estimator, "pyod", options)
