"""The watch: what lies between rows and alarms, in one object and one file.

It owns a detector, an alarm rule, the budget with its calibration, the sampling period, the channels and how files are read.
Offline (:meth:`Watch.alarms`) and online (:meth:`Watch.monitor`) it is one object; its file can be calibrated anew without data.
"""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tisat import registry
from tisat.alarms.alarms import Alarms
from tisat.alarms.budget import Budget, BudgetLike
from tisat.alarms.calibration import Calibration, calibrate
from tisat.alarms.episode_log import Proposal
from tisat.alarms.ongoing import rearm_rows
from tisat.alarms.patterns import Pattern, PatternProposal
from tisat.alarms.rules import DEFAULT_RULE, RULES, AlarmRule, RuleLike, Scored, make_rule, seeded_rule
from tisat.alarms.rules.base import Aggregation
from tisat.errors import ArtefactError, CalibrationWarning, NotFittedError, ParameterError, TisatError
from tisat.io.counters import counters_of, difference
from tisat.io.durations import DurationLike, seconds_of
from tisat.persistence.estimator import document_of, registered
from tisat.persistence.model_file import read_artefact, write_artefact
from tisat.series import ManySeries, Series, SeriesLike, as_many
from tisat.utils.parameters import clone
from tisat.utils.types import AnyArray, Arrays, JsonDict, JsonMap, Params
from tisat.utils.validation import check_flag
from tisat.watch.contaminated import fit_without_anomalies
from tisat.watch.model_files import check_calibration, check_scale, check_watch
from tisat.watch.protocols import CROSS_FITTED, Array, Scorer, fitted_counters
from tisat.watch.settings import WatchParameters, at_pace, refuse_unknown
from tisat.watch.training_notes import labelled_in, warnings_of, with_notes

if TYPE_CHECKING:
    from tisat.watch.fleet import Fleet
    from tisat.watch.monitor import Monitor

DEFAULT_BUDGET = "1/day"  # where the data has a clock
DEFAULT_BUDGET_WITHOUT_CLOCK = "1/10000 rows"


class Watch(WatchParameters):
    """A detector with an alarm rule and a false-alarm budget.

    Parameters
    ----------
    detector : str or Detector
        A registered name, or a detector, fitted or not.
    budget : str, float or timedelta, optional
        False alarms one can accept: ``"1/day"``, ``"3/week"``, ``"1/1000 rows"``, a rate per row, or the time between
        two. ``"1/day"`` unless given, or ``"1/10000 rows"`` where the training data has no clock.
    rule : str, mapping or AlarmRule
        A registered rule by name, with its defaults for the pace of the rows, or with options: ``{"name": "excess", "hold": 50}`` or ``ExcessRule(hold=50)``.
    method : str
        How the threshold is found: see :func:`tisat.alarms.calibrate`.
    control : bool
        The threshold follows the alarms, so that in the long run weak ones keep to the budget even where normal changes; False: it
        stays where calibration put it. Rules whose alarms change their statistic (``paper``, ``drift``) are not controlled.
    period : float, str or timedelta, optional
        The sampling period, where the training data has no clock.
    random_state : int
        Seed of what is drawn at random in the rule and its calibration.
    counters : sequence of str, optional
        Channels that only grow, whose growth per row the model looks at; recognised unless given, ``()``: none.
    rearm : str, float or timedelta, optional
        Time after which an alarm that is ongoing is taken for the new normal: ``"6h"``, ``"500 rows"``; 0: at once. Never by
        itself unless given: it is ongoing until its channels are back or somebody accepts them.
    contaminated : bool
        Training data may hold anomalies: rows that stand out by the detector's own out-of-sample scores are left out of it. A
        warning and the notes of the calibration say how many; ``left_out_rows`` is their number.

    Examples
    --------
    >>> watch = Watch("last-value", budget="1/100 rows").fit(np.random.default_rng(0).normal(size=(2000, 2)))
    >>> watch.alarms(np.concatenate([np.zeros((50, 2)), np.full((5, 2), 40.0)]))[0].raised
    50
    """

    @refuse_unknown
    def __init__(
        self,
        detector: str | Scorer = registry.DEFAULT,
        *,
        budget: BudgetLike | None = None,
        rule: RuleLike = DEFAULT_RULE,
        method: str = "auto",
        control: bool = True,
        period: DurationLike | None = None,
        random_state: int = 0,
        counters: Sequence[str] | None = None,
        rearm: DurationLike | None = None,
        contaminated: bool = False,
    ) -> None:
        self.rearm = rearm
        self.contaminated = contaminated
        self.patterns: tuple[Pattern, ...] = ()  # kinds of alarms that people know
        self.control = control
        self.given_counters = counters
        self.detector: Any = registry.resolve(detector)() if isinstance(detector, str) else detector
        self.budget = budget if budget is None else Budget.check(budget)
        self.method = method
        self.random_state = random_state
        self.reading: Params = {}  # options of Series.read that fit was told
        self.given_period, self.given_rule = period, rule
        self._given_period = None if period is None else seconds_of(period, whose="Watch")
        self.rule = seeded_rule(rule, random_state)
        self._calibration: Calibration | None = None
        self._print: tuple[Array, str, str] | None = None  # normal points, the rest, and the fingerprint of both

    def __repr__(self) -> str:
        return f"Watch({self.detector!r}, budget={self.budget!r}, rule={self.rule!r}, method={self.method!r})"

    # ------------------------------------------------------------------ fit and calibrate

    def fit(self, series: ManySeries, y: object = None, **options: object) -> Self:
        """Fit the detector on normal data, the rule on what it says of data it has not seen, and find the threshold.

        Parameters
        ----------
        series : Series, array, dataframe, file path, or a list of them
        y : array of 0 and 1, optional
            Not learned from: pipelines of scikit-learn give it. A warning says how many rows it calls anomalous.
        **options : of the detector's own ``fit``.
        """
        if "contaminated" in options:
            raise ParameterError("'contaminated' is a parameter of Watch: Watch(contaminated=True).fit(series)")
        check_flag(self.contaminated, "contaminated", "Watch")
        registry.check_detector(self.detector, whose="Watch")
        many = as_many(series, whose="Watch.fit")
        names = counters_of(many) if self.given_counters is None else tuple(self.given_counters)
        unknown = [name for name in names if name not in many[0].channels]
        if unknown:
            raise ParameterError(
                f"The counters of a Watch must be channels of the series: {', '.join(many[0].channels)}. Got {unknown[0]!r} instead."
            )
        many = [difference(one, names, period=many[0].period) for one in many] if names else many
        fit = fit_without_anomalies if self.contaminated else type(self.detector).fit
        fit(self.detector, many, **options)
        self.detector.trained_on_ |= labelled_in(y, sum(map(len, many)))
        for note in warnings_of(self.calibrate()):
            warnings.warn(note, CalibrationWarning, stacklevel=2)
        return self

    def calibrate(self, budget: BudgetLike | None = None) -> Self:
        """Find the threshold for a budget, from what the fitted detector keeps of its normal data."""
        self.budget = self.budget if budget is None else budget
        if not hasattr(self.detector, "normal_"):
            raise NotFittedError(f"The detector of this Watch must be fitted first. Call fit. Got {self.detector!r}.")
        self.rule = at_pace(self.rule, self.given_rule, self.period)
        default = DEFAULT_BUDGET_WITHOUT_CLOCK if self.period is None else DEFAULT_BUDGET
        calibration = calibrate(
            self.rule,
            self.scored(self.detector.normal_),
            Budget.parse(default if self.budget is None else self.budget, period=self.period),
            breaks=self.detector.normal_breaks_,
            method=self.method,
            crossfit=self.detector.traits.crossfit if self.detector.normal_source_ == CROSS_FITTED else 0,
            control=self.control,
            random_state=self.random_state,
        )
        self._calibration = with_notes(calibration, self.detector, self.period)
        return self

    def adopt(self, proposal: Proposal | PatternProposal) -> Self:
        """Put a proposal in force for the monitors made from now on: its threshold, or its pattern beside those there are."""
        if isinstance(proposal, PatternProposal):
            self.patterns = (*self.patterns, proposal.pattern)
            return self
        if self.calibration != proposal.before:
            raise ParameterError("A proposal must be about the calibration in force. This one was made for another.")
        self._calibration, self.budget = proposal.after, proposal.after.budget
        return self

    def at(self, calibration: Calibration) -> Watch:
        """The same watch, detector and rule shared, at another threshold; this one stays as it is."""
        other = copy.copy(self)
        other._calibration, other.budget = calibration, calibration.budget
        return other

    def recalibrated(
        self,
        budget: BudgetLike | None = None,
        *,
        rule: RuleLike | None = None,
        method: str | None = None,
        period: DurationLike | None = None,
        control: bool | None = None,
        rearm: DurationLike | None = None,
    ) -> Watch:
        """Make the same watch for another budget, rule (or options of its rule), method, period, control or rearm; this one stays."""
        rule = make_rule(rule, like=self.rule) if isinstance(rule, Mapping) else rule
        said = {"budget": budget, "rule": rule, "method": method, "period": period, "control": control, "rearm": rearm}
        return self._like(self.detector, **said).calibrate()

    def _like(self, detector: Scorer, **said: object) -> Watch:
        """A watch with the settings of this one, but for what is said; not calibrated yet."""
        known = fitted_counters(self.detector) if hasattr(self.detector, "trained_on_") else None
        fixed = isinstance(self.given_rule, AlarmRule)
        settings: Params = {
            "budget": self.budget,
            "rule": make_rule(self.rule.name, **self.rule.params()) if fixed else self.given_rule,
            "method": self.method,
            "control": self.control,
            "period": self._given_period,
            "random_state": self.random_state,
            "rearm": self.rearm,
            "contaminated": self.contaminated,
            "counters": known if self.given_counters is None else self.given_counters,
        }
        other = Watch(detector, **settings | {name: value for name, value in said.items() if value is not None})
        other.reading, other.patterns = dict(self.reading), self.patterns
        return other

    def refitted(self, series: ManySeries, *, budget: BudgetLike | None = None) -> Watch:
        """The same detector and rule with their settings, fitted on other rows; this one stays as it is.

        Parameters
        ----------
        series : Series, array, dataframe, file path, or a list of them
            Normal. A model keeps no rows: those it was fitted on must be given again where they are to count.
        budget : optional
            Another one.
        """
        many = as_many(series, whose="Watch.refitted")
        other = self._like(clone(self.detector), budget=budget)
        return other.fit([one.in_order(self.channels, whose="the old model") for one in many])

    @property
    def calibration(self) -> Calibration:
        """The threshold, the budget behind it and how it was met on normal data."""
        if self._calibration is None:
            self.calibrate()  # the detector came fitted
        assert self._calibration is not None
        return self._calibration

    @property
    def period(self) -> float | None:
        """The sampling period in seconds: that of the training data, or the one that was given."""
        trained: float | None = getattr(self.detector, "trained_on_", {}).get("period_seconds")
        return trained if self._given_period is None else self._given_period

    @property
    def rearm_rows(self) -> int | None:
        """The rows after which an ongoing alarm is taken for the new normal; None: never by itself."""
        return rearm_rows(self.rearm, self.period)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels, in the model's order."""
        return tuple(self.detector.channels_)

    def scored(self, points: Array) -> Scored:
        """Score points in the forms that rules take."""
        return Aggregation(self.detector).run(points)

    # ------------------------------------------------------------------ alarms, offline and online

    def read(self, path: str | Path, **options: object) -> Series:
        """A series from a file, read as the training files were unless given otherwise."""
        given = {name: value for name, value in options.items() if value}
        return Series.read(path, **{**self.reading, **given})

    def alarms(self, series: SeriesLike, *, any_period: bool = False, ignore_extra: bool = False) -> Alarms:
        """The alarms of a series.

        Parameters
        ----------
        series : Series, array, dataframe or file path
            Its channels go by name where both sides have names.
        any_period : bool
            Take rows that come at another pace than in training.
        ignore_extra : bool
            Leave out channels the model does not know.
        """
        from tisat.watch.offline import alarms_of_series

        return alarms_of_series(self, series, any_period=any_period, ignore_extra=ignore_extra)

    def score(self, series: SeriesLike, *, centred: bool = False, train: ManySeries | None = None) -> Array:
        """Scores ``(T,)`` of a series: the statistic that alarms are raised on; NaN where there is none.

        ``centred`` scores each row by what lies round it, for rankings of a whole file; with normal rows ``train`` windows of the
        data's own period are compared too. See :func:`tisat.watch.scoring.score_series`.
        """
        from tisat.watch.scoring import score_series

        return score_series(self, series, centred=centred, train=train)

    def monitor(self, *, name: str = "") -> Monitor:
        """A monitor of one entity, row by row: the same alarms as :meth:`alarms` of the whole."""
        from tisat.watch.monitor import Monitor

        return Monitor(self, name=name)

    def fleet(self, entities: Iterable[str] = (), *, enrol: bool = False, exact: bool = False) -> Fleet:
        """Monitors of many entities that share this watch; see :class:`tisat.watch.Fleet`."""
        from tisat.watch.fleet import Fleet

        return Fleet(self, entities=entities, enrol=enrol, exact=exact)

    def fingerprint(self) -> str:
        """Tells what this watch sees from what another does: its detector, channels, normal points and rule; not its threshold."""
        rule = json.dumps([self.rule.name, self.rule.identity()], sort_keys=True)
        head = f"{type(self.detector).__qualname__}:{self.channels}:{rule}"
        normal = self.detector.normal_
        if self._print is None or self._print[0] is not normal or self._print[1] != head:
            digest = hashlib.sha256(head.encode())
            digest.update(np.ascontiguousarray(normal).tobytes())
            self._print = (normal, head, digest.hexdigest())  # megabytes are hashed once, not at every entity's state
        return self._print[2]

    def save(self, path: str | Path) -> None:
        """Write detector, rule, budget and calibration to one file, atomically."""
        document, tensors = self.document()
        Watch.of_document(document, tensors, path=path)  # what could not be read back is not written
        write_artefact(path, document, tensors)

    def document(self) -> tuple[JsonDict, Arrays]:
        """The file's content as plain values and arrays; see :meth:`of_document`."""
        detector, tensors = document_of(self.detector)
        return {**detector, "kind": "watch", "watch": self.to_json()}, tensors

    def to_json(self) -> JsonDict:
        """Everything but the detector, as plain values."""
        calibration = self.calibration
        return {
            "budget": calibration.budget,
            "rule": self.rule.name,
            "options": self.rule.params(),
            "method": self.method,
            "control": self.control,
            "period": self._given_period,
            "random_state": self.random_state,
            **({"contaminated": True} if self.contaminated else {}),
            **({} if self.rearm is None else {"rearm": f"{self.rearm_rows} rows"}),
            **({"patterns": [one.to_json() for one in self.patterns]} if self.patterns else {}),
            "calibration": calibration.to_json(),
            "reading": self.reading,
        }

    @classmethod
    def load(cls, path: str | Path, *, budget: BudgetLike | None = None) -> Watch:
        """Read a watch back. The file of a bare detector becomes a watch with the default rule.

        Parameters
        ----------
        path : file
        budget : optional
            Calibrate for this budget instead of the one in the file.
        """
        document, tensors = read_artefact(path)
        return cls.of_document(document, tensors, path=path, budget=budget)

    @classmethod
    def of_document(
        cls, document: JsonMap, tensors: Mapping[str, AnyArray], *, path: str | Path, budget: BudgetLike | None = None
    ) -> Watch:  # fmt: skip
        """The watch whose file holds these."""
        if document.get("kind") not in ("watch", "detector"):
            raise ArtefactError(
                f"The model file {str(path)!r} must hold a watch or a detector. Got {document.get('kind')!r} instead."
            )
        detector = registered(document, tensors, path=path)
        part = document.get("watch")
        if part is None:
            return cls(detector, budget=budget)
        try:
            check_watch(part)
            rule, names = part["rule"], ("budget", "method", "period", "random_state")
            settings = {name: part[name] for name in names} | {"contaminated": part.get("contaminated") is True}
            settings["control"] = bool(part.get("control", False))  # thresholds of files without it stay where they are
            options = RULES[rule].complete_options(part["options"]) if rule in RULES else part["options"]
            watch = cls(detector, rule=make_rule(rule, **options), rearm=part.get("rearm"), **settings)
            rearm_rows(watch.rearm, watch.period)
            watch.patterns = tuple(map(Pattern.from_json, part.get("patterns", ())))
            watch.reading = dict(part["reading"])
            if budget is not None:
                return watch.calibrate(budget)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what there was to say was said when it was calibrated
                watch.rule.fit(watch.scored(detector.normal_))
            watch._calibration = check_calibration(part["calibration"])
            check_scale(watch._calibration, watch.rule.compression)
        except Exception as error:  # whatever an untrusted file makes of our code, one sentence comes out of it
            if budget is not None and isinstance(error, TisatError):  # of what was asked, which is not the file's fault
                raise
            raise ArtefactError(
                f"The model file {str(path)!r} must hold a whole watch. It does not: {str(error)[:300]}"
            ) from None
        return watch
