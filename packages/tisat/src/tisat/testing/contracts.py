"""The contract tests every detector obeys, as functions: run them over your own with :func:`check_detector`.

Each contract is one sentence and one function. The test suite runs every contract test over every registered detector, so a new one
gets them all by being registered. A class that cannot obey a contract says so in ``contract_exemptions``, with the reason.

The contract tests know the public contract of :mod:`tisat.detectors.base` and nothing of any particular detector.
"""

from __future__ import annotations

import inspect
import json
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from sklearn.base import clone

from tisat.detectors.base import Detector
from tisat.detectors.loading import load
from tisat.errors import InputError, NotFittedError
from tisat.gap_filling import MAX_GAP
from tisat.series import Series
from tisat.testing.subject import N_TEST, N_TRAIN, Subject, assert_refused, example
from tisat.utils.parameters import FROM_PRESET

FINAL = (
    "fit",
    "fit_predict",
    "decision_function",
    "score_samples",
    "points",
    "predict",
    "normal_level",
    "save",
    "load",
    "monitor",
    "alarms",
)


Contract: TypeAlias = Callable[[Subject], None]
CONTRACTS: dict[str, Contract] = {}


def _contract(function: Contract) -> Contract:
    CONTRACTS[function.__name__.lstrip("_")] = function
    return function


@_contract
def _public_methods_are_inherited(subject: Subject) -> None:
    """Validation happens once, in the abstract classes: no concrete detector overrides a public method."""
    for cls in subject.cls.__mro__:
        if issubclass(cls, Detector) and not inspect.isabstract(cls):
            overridden = sorted(set(FINAL) & set(vars(cls)))
            assert not overridden, f"{cls.__name__} overrides {', '.join(overridden)}"


@_contract
def _constructor_only_stores(subject: Subject) -> None:
    """Parameters come back unchanged from get_params, survive clone, and repr is the constructor call."""
    detector = subject.make()
    params = detector.get_params(deep=False)
    assert set(vars(detector)) == set(params), "the constructor stores its arguments and nothing else"
    assert clone(detector).get_params(deep=False).keys() == params.keys()
    again = subject.cls(**params)
    assert repr(again) == repr(detector)
    plain = (int, float, str, bool, tuple, type(None))
    if all(value is FROM_PRESET or isinstance(value, plain) for value in params.values()):
        assert eval(repr(detector), {subject.cls.__name__: subject.cls}).get_params() == detector.get_params()  # noqa: S307
    default = subject.cls().set_params(**params) if _constructible(subject.cls) else again
    assert repr(default) == repr(detector)


def _constructible(cls: type[Detector]) -> bool:
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return all(parameter.default is not inspect.Parameter.empty for parameter in parameters)


@_contract
def _scores_have_one_entry_a_row(subject: Subject) -> None:
    """T rows give T scores; NaN only at the beginning, and some row gets a number."""
    scores = subject.fitted.decision_function(subject.test)
    assert scores.shape == (N_TEST,)
    assert scores.dtype == np.float64
    unknown = np.isnan(scores)
    assert not unknown.all(), "no row got a score"
    assert not unknown[np.argmin(unknown) :].any(), "NaN after the warm-up"
    assert not np.isinf(scores).any()


@_contract
def _same_seed_same_scores(subject: Subject) -> None:
    """Two fits with the same parameters on the same data give the same scores."""
    found = subject.second.scores
    np.testing.assert_array_equal(found, subject.fitted.decision_function(subject.test), strict=True)


@_contract
def _fitting_again_forgets(subject: Subject) -> None:
    """A detector fitted on other data first is the same as a fresh one."""
    detector = subject.make().fit(example(N_TRAIN, channels=3, seed=5) * 2.0)
    detector.fit(subject.train)
    np.testing.assert_array_equal(
        detector.decision_function(subject.test), subject.fitted.decision_function(subject.test)
    )


@_contract
def _later_rows_never_change_earlier_scores(subject: Subject) -> None:
    """Scores are causal: a prefix scores the same as the whole."""
    whole = subject.fitted.decision_function(subject.test)
    for length in (N_TEST // 2, N_TEST - 1):
        prefix = subject.fitted.decision_function(subject.test[:length])
        subject.assert_equal(prefix, whole[:length], what=f"prefix of {length}")


@_contract
def _rows_one_by_one_equal_the_batch(subject: Subject) -> None:
    """Pushing rows through a stream gives the batch call's points, also after a restart from its state."""
    expected = subject.fitted.points(subject.test)
    stream = subject.fitted._stream()
    results = []
    for index, row in enumerate(subject.test):
        if index == N_TEST // 2:
            state = stream.state()
            stream = subject.fitted._stream()
            stream.restore(state)
        results.append(np.array(stream.step(row)))
    subject.assert_equal(np.stack(results), expected, what="stream")
    stream.reset()
    np.testing.assert_array_equal(stream.step(subject.test[0]), subject.fitted._stream().step(subject.test[0]))


@_contract
def _windows_in_a_batch_equal_one_by_one(subject: Subject) -> None:
    """Where memory is bounded, many windows scored together give what each gives alone."""
    context = subject.fitted._context()
    if context is None or context + 4 > N_TEST:
        return
    windows = np.stack([subject.test[i : i + context + 1] for i in range(4)])
    expected = subject.fitted.points(subject.test[: context + 4])[context:]
    subject.assert_equal(subject.fitted._points_of_windows(windows), expected, what="windows")
    stream = subject.fitted.stream()
    if hasattr(stream, "window") and hasattr(stream, "answers"):
        asked = [stream.window(row) for row in subject.test[: context + 4]]
        asked = [window.copy() for window in asked if window is not None][-4:]
        alone = np.concatenate([stream.answers(window[None]) for window in asked])
        np.testing.assert_array_equal(stream.answers(np.stack(asked), exact=True), alone, err_msg="to the bit")


@_contract
def _input_is_untouched(subject: Subject) -> None:
    """Neither fit nor scoring writes to the caller's arrays."""
    np.testing.assert_array_equal(subject.second.train, subject.train)
    np.testing.assert_array_equal(subject.second.test, subject.test)


@_contract
def _scoring_learns_nothing(subject: Subject) -> None:
    """Scoring a wild series in between changes no later score: nothing from test reaches the model."""
    before = subject.fitted.decision_function(subject.test)
    subject.fitted.decision_function(subject.test * 100.0 - 50.0)
    np.testing.assert_array_equal(subject.fitted.decision_function(subject.test), before)


@_contract
def _labels_are_not_looked_at(subject: Subject) -> None:
    """Training labels change nothing."""
    labels = np.arange(N_TRAIN) % 7 == 0
    detector = subject.make().fit(Series(subject.train, labels=labels))
    np.testing.assert_array_equal(
        detector.decision_function(subject.test), subject.fitted.decision_function(subject.test)
    )


@_contract
def _saved_and_loaded_is_the_same(subject: Subject) -> None:
    """A detector read back from its file has the same parameters, normal points and scores."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.tisat"
        subject.fitted.save(file)
        loaded = load(file)
    assert type(loaded) is subject.cls
    assert repr(loaded) == repr(subject.fitted)
    np.testing.assert_array_equal(loaded.normal_, subject.fitted.normal_)
    np.testing.assert_array_equal(
        loaded.decision_function(subject.test), subject.fitted.decision_function(subject.test)
    )
    assert loaded.trained_on_.keys() == subject.fitted.trained_on_.keys()


@_contract
def _global_generators_are_untouched(subject: Subject) -> None:
    """No global random state is read or moved."""
    assert not subject.second.moved, f"the global state of {subject.second.moved} moved"


@_contract
def _a_gross_fault_scores_higher(subject: Subject) -> None:
    """Higher is more anomalous: a jump far outside everything seen scores above the normal rows."""
    faulty = subject.test.copy()
    faulty[N_TEST - 20 :] += np.array([40.0, -40.0, 40.0])
    scores = subject.fitted.decision_function(faulty)
    assert np.nanmax(scores[N_TEST - 20 :]) > np.nanmax(scores[: N_TEST - 20])


@_contract
def _reasons_name_the_faulty_channel(subject: Subject) -> None:
    """An explanation's shares add up to one, its numbers are finite, and it blames the channel with a gross fault."""
    faulty = subject.test.copy()
    faulty[N_TEST - 20 :, 1] += 40.0
    points = subject.fitted.points(faulty)
    scores = subject.fitted.aggregate(points)
    worst = N_TEST - 20 + int(np.nanargmax(scores[N_TEST - 20 :]))
    for time_step in (N_TEST - 30, worst):
        why = subject.fitted.explain(faulty[time_step], points[time_step])
        for array in (why.channels, why.seen, why.expected, why.spread):
            assert array.shape == (3,)
            assert np.isfinite(array).all()
        assert abs(why.channels.sum() - 1.0) < 1e-9
        assert (why.channels >= 0).all()
        assert (why.spread > 0).all()
        assert why.kind
        assert why.how
        assert len(why.sentences(subject.fitted.channels_)) >= 1
    assert why.ranking()[0] == 1, f"channel 1 is far out, and the shares are {why.channels}"


@_contract
def _a_constant_channel_is_no_accident(subject: Subject) -> None:
    """Channels that never move, in training or ever, leave finite scores."""
    train, test = subject.train.copy(), subject.test.copy()
    train[:, 1] = 2.0
    test[: N_TEST // 2, 1] = 2.0
    scores = subject.make().fit(train).decision_function(test)
    assert np.isfinite(scores[~np.isnan(scores)]).all()
    assert not np.isnan(scores[-10:]).any()
    still = subject.make().fit(np.full((N_TRAIN, 2), 2.0)).decision_function(np.full((N_TEST, 2), 2.0))
    assert np.isfinite(still[-10:]).all()


@_contract
def _one_channel_is_enough(subject: Subject) -> None:
    """A univariate series, given flat or as a column, is scored."""
    flat = subject.make().fit(subject.train[:, 0]).decision_function(subject.test[:, 0])
    column = subject.make().fit(subject.train[:, :1]).decision_function(subject.test[:, :1])
    np.testing.assert_array_equal(flat, column)
    assert np.isfinite(flat[-10:]).all()


@_contract
def _a_short_series_is_all_warm_up(subject: Subject) -> None:
    """A series shorter than the warm-up scores NaN throughout.

    One row is not an error.
    """
    scores = subject.fitted.decision_function(subject.test[:1])
    assert scores.shape == (1,)
    warm_up = int(np.isnan(subject.fitted.decision_function(subject.test)).sum())
    if warm_up > 1:
        assert np.isnan(subject.fitted.decision_function(subject.test[: warm_up - 1])).all()


@_contract
def _short_gaps_are_carried_and_long_ones_are_not_scored(subject: Subject) -> None:
    """A missing value is carried forward up to the stated gap.

    Beyond it there is no score, and later there is one.
    """
    test = example(3 * N_TEST, channels=3, seed=2)
    test[60:62, 0] = np.nan
    carried = test.copy()
    carried[60:62, 0] = carried[59, 0]
    subject.assert_equal(
        subject.fitted.decision_function(test), subject.fitted.decision_function(carried), what="short gap"
    )
    if subject.cls.traits.partial:  # one channel less is no reason to stop; none at all is
        test[100 : 100 + 2 * MAX_GAP, 1] = np.nan
        assert np.isfinite(subject.fitted.decision_function(test)[100 : 100 + 2 * MAX_GAP]).all(), "one channel is gone"
        test[100 : 100 + 2 * MAX_GAP] = np.nan
    test[100 : 100 + 2 * MAX_GAP, 1] = np.nan
    scores = subject.fitted.decision_function(test)
    assert np.isnan(scores[100 + MAX_GAP : 100 + 2 * MAX_GAP]).all()
    assert np.isfinite(scores[-5:]).all(), "the score must come back after the gap"
    train = subject.train.copy()
    train[50 : 50 + 2 * MAX_GAP, 2] = np.nan
    assert np.isfinite(subject.make().fit(train).decision_function(subject.test)[-5:]).all()


@_contract
def _bad_input_is_refused(subject: Subject) -> None:
    """Infinity, another number of channels, no rows, too few rows, text: each is an InputError."""
    infinite = subject.test.copy()
    infinite[3, 1] = np.inf
    for bad in (infinite, subject.test[:, :2], subject.test[:0], [["a", "b", "c"]], "no/such/file.csv"):
        assert_refused(partial(subject.fitted.decision_function, bad))
    for bad in (infinite, subject.train[:0], subject.train[:1], np.full((N_TRAIN, 2), np.nan)):
        assert_refused(partial(subject.make().fit, bad))


@_contract
def _channels_go_by_name(subject: Subject) -> None:
    """Channels in another order are put in order.

    Other names are refused, and the sentence says which.
    """
    names = ("flow", "heat", "power")
    detector = subject.make().fit(Series(subject.train, channels=names))
    expected = detector.decision_function(Series(subject.test, channels=names))
    turned = Series(subject.test[:, [2, 0, 1]], channels=("power", "flow", "heat"))
    np.testing.assert_array_equal(detector.decision_function(turned), expected)
    message = ""
    try:
        detector.decision_function(Series(subject.test, channels=("flow", "Heat", "power")))
    except InputError as error:
        message = str(error)
    assert "Missing: heat; not known to it: Heat" in message, f"a channel under another name was scored, or: {message}"


@_contract
def _finite_rows_have_finite_scores(subject: Subject) -> None:
    """After any finite value scores are finite, results are JSON, the state can be saved, and the stream recovers."""
    rows = subject.test.copy()
    rows[60, 0], rows[61, 0], rows[62, 1] = 1e308, -1e308, 1e153
    usual = subject.fitted.decision_function(subject.test)
    scores = subject.fitted.decision_function(rows)
    assert not np.isinf(scores).any(), "an infinite score"
    np.testing.assert_array_equal(np.isnan(scores), np.isnan(usual), err_msg="a huge value took scores away")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = subject.fitted.monitor(false_alarms="1/20 rows")
    for number, row in enumerate(rows):
        json.dumps(monitor.update(row).to_json(), allow_nan=False)
        if 60 <= number < 66 or number == N_TEST - 1:
            assert monitor.to_bytes()
    end = slice(N_TEST - 10, N_TEST)
    high = 100.0 * max(float(np.nanmax(np.abs(usual))), 1e-12)
    if subject.fitted._context() is None:  # unbounded memory: it fades
        high = max(high, 1e-3 * float(np.nanmax(np.abs(scores[60:63]))))
    if np.isfinite(usual[end]).any():
        assert np.nanmax(np.abs(scores[end])) <= high, "a huge value is not forgotten"


@_contract
def _unfitted_use_is_refused(subject: Subject) -> None:
    """Scores, levels and files need fit first."""
    detector = subject.make()
    for call in (lambda: detector.decision_function(subject.test), detector.normal_level, lambda: detector.save("x")):
        try:
            call()
        except NotFittedError:
            continue
        raise AssertionError("an unfitted detector answered")


@_contract
def _predictions_follow_the_scores(subject: Subject) -> None:
    """Predict is 1 exactly where the score exceeds the normal quantile; warm-up is 0."""
    scores = subject.fitted.decision_function(subject.test)
    level = subject.fitted.normal_level(quantile=0.9)
    predicted = subject.fitted.predict(subject.test, quantile=0.9)
    np.testing.assert_array_equal(predicted, np.nan_to_num(scores, nan=-np.inf) > level)


def contracts_for(cls: type[Detector]) -> list[str]:
    """The names of the contract tests ``cls`` must obey: all but its named exemptions."""
    unknown = set(cls.traits.contract_exemptions) - set(CONTRACTS)
    assert not unknown, f"{cls.__name__} is exempt from contract tests that do not exist: {sorted(unknown)}"
    return [name for name in CONTRACTS if name not in cls.traits.contract_exemptions]


def check_detector(cls: type[Detector]) -> None:
    """Run every contract test over a registered detector class.

    An AssertionError says which one it breaks.

    Examples
    --------
    >>> from tisat.detectors import RandomGuess
    >>> check_detector(RandomGuess)
    """
    subject = Subject(cls)
    for name in contracts_for(cls):
        try:
            CONTRACTS[name](subject)
        except AssertionError as error:
            raise AssertionError(
                f"{cls.__name__} breaks the contract {name!r}: {CONTRACTS[name].__doc__}\n{error}"
            ) from error
