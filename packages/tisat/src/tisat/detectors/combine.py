"""Several detectors as one: each is a view, measured in units of its own normal level, and the alarm names the one that is loudest.

A member's score of 0 is its normal level and -1 its normal median, whatever its own units are; so members can be added without one drowning the
others. Members are fitted on the same rows. Alarm rules see every member (``views``), so that one that is loud alone is heard.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tisat import registry
from tisat.alarms.explanation import Explanation
from tisat.alarms.rules.base import Scored
from tisat.detectors.base import NORMAL_QUANTILE, Array, Detector, Stream, Traits
from tisat.detectors.streaming import RowStream
from tisat.errors import ArtefactError, ParameterError, SeriesError
from tisat.persistence.estimator import detector_from, document_of
from tisat.series import Series
from tisat.utils.parameters import FROM_PRESET, choice, clone, learned, value
from tisat.utils.stage import State
from tisat.utils.types import AnyArray, Arrays, JsonDict, JsonMap, Params

DEFAULT = ("prism", "mahalanobis")
LEAST_LEVEL = 1e-12  # a member whose normal scores do not differ has no unit of its own: 1 is taken
KEPT = 50  # normal points a member keeps for itself; the combination keeps all of its own
MOST = 20


class _CombinedStream(RowStream):
    """The members' streams side by side."""

    def __init__(self, members: Sequence[Detector]) -> None:
        self._streams = [member._stream() for member in members]

    def step(self, row: Array, /) -> Array:
        return np.concatenate([np.asarray(stream.step(row)) for stream in self._streams])

    def run(self, rows: Array, /) -> Array:
        return np.concatenate([np.asarray(stream.run(rows)) for stream in self._streams], axis=1)

    def reset(self) -> None:
        for one in self._streams:
            one.reset()

    def state(self) -> State:
        return {str(i): stream.state() for i, stream in enumerate(self._streams)}

    def restore(self, state: State, /) -> None:
        for i, stream in enumerate(self._streams):
            stream.restore(state[str(i)])


class Combine(Detector):
    """Several detectors in one: each is a view in units of its normal level.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(800, 2))
    >>> detector = combine("last-value", ("mahalanobis", {"window": 2})).fit(rows)
    >>> detector
    Combine(members=('last-value', ('mahalanobis', {'window': 2})))
    >>> rows[500] += 20.0
    >>> int(np.nanargmax(detector.decision_function(rows)))
    500

    Notes
    -----
    ``how="sum"`` adds ``log(1 + height)`` of the members, the height being 1 at the normal level, as prism does with its views; ``"max"`` takes the loudest
    member, ``"mean"`` the mean height. Members that look at the same thing add little; members that disagree add false alarms: compare on data of
    your own before you trust it. It is no better than its best member by contract. Aggarwal, Sathe: Theoretical foundations and algorithms for outlier ensembles, SIGKDD Explorations 2015.
    """

    traits: ClassVar[Traits] = Traits(crossfit=5)
    _restored_apart: ClassVar[frozenset[str]] = frozenset({"members_"})

    members: object = value(
        DEFAULT,
        doc="Names of `tisat detectors`, or (name, parameters) for those that are not to have their defaults: ('prism', ('pca', {'window': 5})). "
        "tisat.combine(...) also takes detectors.",
    )
    how: str = choice("sum", of=("sum", "mean", "max"), doc="How the members' heights become one score.")

    levels_: Array = learned("V, 2")  # normal median and level of each member's score
    members_: tuple[Detector, ...] = learned()  # fitted

    # ------------------------------------------------------------------ members

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._build()

    def _build(self) -> list[Detector]:
        """Fresh members."""
        members = self.members
        if not isinstance(members, tuple | list) or not 1 <= len(members) <= MOST:
            raise ParameterError(
                f"The 'members' parameter of Combine must be a tuple of 1 to {MOST} detectors. Got {members!r} instead."
            )
        detectors: list[Detector] = []
        for description in members:
            if isinstance(description, Detector):
                detectors.append(clone(description))
                detectors[-1]._check_parameters()
                continue
            name, params = (
                (description, {})
                if isinstance(description, str)
                else tuple(description)
                if isinstance(description, tuple | list) and len(description) == 2
                else (None, None)
            )
            if not isinstance(name, str) or not isinstance(params, Mapping):
                raise ParameterError(
                    f"A member of Combine must be a name, (name, parameters) or a detector. Got {description!r} instead."
                )
            cls = registry.resolve(name)
            if not issubclass(cls, Detector):
                raise ParameterError(f"A member of Combine must be a detector. Got {name!r} instead.")
            try:
                member = cls(**params)
            except TypeError as error:
                raise ParameterError(f"A member of Combine must be given parameters it has. {error}") from None
            member._check_parameters()
            detectors.append(member)
        return detectors

    def _members(self) -> Sequence[Detector]:
        return getattr(self, "members_", None) or self._build()

    # ------------------------------------------------------------------ what every detector writes

    def _fit(self, parts: Sequence[Array]) -> None:
        normal = [Series(part, channels=self.channels_) for part in parts]
        members = [member.fit(normal, holdout=0.0) for member in vars(self).pop("_decided", None) or self._build()]
        self.levels_ = np.array([_level(member.aggregate(member.normal_)) for member in members])
        for member in members:
            member.normal_, member.normal_breaks_ = member.normal_[:KEPT], np.zeros(1, dtype=np.int64)
        self.members_ = tuple(members)

    def _cross_fitted(self, parts: Sequence[Array]) -> list[Array] | None:
        if any(member.traits.crossfit < 2 for member in self._build()):
            return None  # a member is expensive to fit: a tail is held out instead
        self._decide(parts)
        return super()._cross_fitted(parts)

    def _decide(self, parts: Sequence[Array]) -> None:
        self._decided = self._build()
        for member in self._decided:
            member.channels_, member.n_channels_ = self.channels_, self.n_channels_
            member._decide(parts)

    def _prepare_fold(self, other: Combine) -> None:
        other._decided = other._build()
        for member, fresh in zip(self._decided, other._decided, strict=True):
            member._prepare_fold(fresh)

    def _points(self, part: Array) -> Array:
        return np.concatenate([member._points(part) for member in self.members_], axis=1)

    def _points_of_windows(self, windows: Array) -> Array:
        columns = []
        for member in self.members_:
            context = member._context()
            assert context is not None
            columns.append(member._points_of_windows(windows[:, windows.shape[1] - context - 1 :]))
        return np.concatenate(columns, axis=1)

    def _context(self) -> int | None:
        contexts = [member._context() for member in self._members()]
        return None if None in contexts else max(context for context in contexts if context is not None)

    def _minimum_rows(self) -> int:
        return max(member._minimum_rows() for member in self._members())

    def _stream(self) -> Stream:
        return _CombinedStream(self.members_)

    def _normal_points(self, parts: Sequence[Array]) -> list[Array]:
        each = [member._normal_points(parts) for member in self.members_]
        return [np.concatenate(points, axis=1) for points in zip(*each, strict=True)]

    # ------------------------------------------------------------------ from points to scores

    def _split(self, points: Array) -> list[Array]:
        return np.split(points, np.cumsum([member.n_points_ for member in self.members_])[:-1], axis=-1)

    def _view_scores(self, points: Array) -> Array:
        """The scores ``(T, V)`` of each member: 0 at its normal level, -1 at its normal median; NaN until all have warmed up."""
        parts = self._split(points)
        scores = np.stack([member.aggregate(part) for member, part in zip(self.members_, parts, strict=True)], axis=1)
        scores = (scores - self.levels_[:, 1]) / (self.levels_[:, 1] - self.levels_[:, 0])
        return np.where(np.isnan(scores).any(axis=1, keepdims=True), np.nan, scores)

    def aggregate(self, points: Array) -> Array:
        """Scores ``(T,)``, as ``how`` says."""
        heights = np.maximum(self._view_scores(points) + 1.0, 0.0)
        if self.how == "sum":
            return np.asarray(np.log1p(heights).sum(axis=1))
        return np.asarray(heights.max(axis=1) if self.how == "max" else heights.mean(axis=1))

    def score_points(self, points: Array) -> Scored:
        """Scores of points, and of each member."""
        return Scored(points, self.aggregate(points), self._view_scores(points))

    def _explain(self, row: Array, point: Array) -> Explanation:
        """Explain by the member with the highest score."""
        loudest = int(np.argmax(np.nan_to_num(self._view_scores(point[None])[0], nan=-np.inf)))
        return self.members_[loudest]._explain(row, self._split(point)[loudest])

    # ------------------------------------------------------------------ on disk

    def _state(self) -> tuple[JsonDict, Arrays]:
        plain, tensors = super()._state()
        documents = []
        for i, member in enumerate(plain.pop("members_")):
            document, arrays = document_of(member)
            documents.append(document)
            tensors.update({f"{i}.{name}": array for name, array in arrays.items()})
        return {**plain, "members": documents}, tensors

    def _restore(self, plain: JsonMap, tensors: Mapping[str, AnyArray]) -> None:
        rest = dict(plain)
        documents = rest.pop("members")
        expected = self._build()
        if not isinstance(documents, tuple) or len(documents) != len(expected):
            raise ArtefactError("A file of Combine must hold as many members as it names. It does not.")
        members = []
        for i, (document, fresh) in enumerate(zip(documents, expected, strict=True)):
            mine = {name.removeprefix(f"{i}."): array for name, array in tensors.items() if name.startswith(f"{i}.")}
            if document["detector"] != registry.name_of(type(fresh)):
                raise ArtefactError(
                    f"Member {i} of Combine must be what its parameters name. Got {document['detector']!r} instead."
                )
            members.append(detector_from(type(fresh), document, mine, path=f"member {i}"))
        if any(member.channels_ != tuple(rest["channels_"]) for member in members):
            raise ArtefactError("The members of Combine must have its channels. They do not.")
        self.members_ = tuple(members)
        super()._restore(rest, {name: array for name, array in tensors.items() if not name[0].isdigit()})

    def _check_learned(self) -> None:
        super()._check_learned()
        whole = sum(member.n_points_ for member in self.members_)
        if (
            self.levels_.shape != (len(self.members_), 2)
            or self.n_points_ != whole
            or (self.levels_[:, 1] <= self.levels_[:, 0]).any()
        ):
            raise ArtefactError("The levels and members of Combine must fit together. They do not.")

    @classmethod
    def _test_params(cls) -> Params:
        return {"members": ("last-value", ("mahalanobis", {"window": 4}), ("pca", {"window": 2}))}


def _level(scores: Array) -> tuple[float, float]:
    """Normal median and level, never the same."""
    valid = scores[~np.isnan(scores)]
    if not len(valid):
        raise SeriesError("The rows given to Combine.fit must be enough for each member to score some. They are not.")
    median, level = float(np.median(valid)), float(np.quantile(valid, NORMAL_QUANTILE))
    level = max(level, float(valid.mean()))
    return (median, level) if level - median > LEAST_LEVEL * max(abs(median), 1.0) else (median, median + 1.0)


def combine(*members: str | tuple[str, Params] | Detector, how: str = "sum") -> Combine:
    """Several detectors as one: an unfitted :class:`Combine`.

    Parameters
    ----------
    *members : str, (str, dict) or Detector
        Registered names, names with parameters, or detectors. What holds one that cannot be saved cannot be saved.
    how : {"sum", "mean", "max"}
        How the heights of the members become one score.

    Returns
    -------
    Combine
        A detector whose score is that of several.

    Examples
    --------
    >>> import tisat
    >>> combine("prism", tisat.make("pca", window=5), how="max")
    Combine(how='max', members=('prism', ('pca', {'window': 5})))
    """
    if len(members) == 1 and isinstance(members[0], list):
        raise ParameterError(
            "The members of combine must be given one by one, such as combine('prism', 'pca'). Got a list instead."
        )
    descriptions: list[str | tuple[str, Params] | Detector] = []
    for member in members or DEFAULT:
        if isinstance(member, Detector) and registry.is_registered(type(member)):
            defaults = inspect.signature(type(member)).parameters
            own = member.get_params(deep=False)
            changed = {name: given for name, given in own.items() if given is not FROM_PRESET and repr(given) != repr(defaults[name].default)}  # fmt: skip
            name = registry.name_of(type(member))
            descriptions.append((name, changed) if changed else name)
        else:
            descriptions.append(member)
    return Combine(members=tuple(descriptions), how=how)
