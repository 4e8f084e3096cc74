"""Every detector against every bad input, in fit, score and monitor: fine and finite, or one of our errors."""

import json
import warnings

import numpy as np
import pytest

from tisat import registry
from tisat.errors import TisatError
from tisat.testing import contracts as checks
from tisat.watch import Watch

BASE = checks.example(300, channels=3, seed=1)


def changed(row=None, column=None, value=0.0, rows=BASE):
    values = np.array(rows)
    values[slice(None) if row is None else row, slice(None) if column is None else column] = value
    return values


def masked():
    values = np.ma.array(np.array(BASE), mask=np.zeros(BASE.shape, dtype=bool))
    values[100, 1] = 1e9
    values.mask[100, 1] = True
    return values


INPUTS = {
    "constant": lambda: changed(column=0, value=2.0),
    "all constant": lambda: np.ones_like(BASE),
    "fortran": lambda: np.asfortranarray(BASE),
    "strided": lambda: np.repeat(BASE, 2, axis=0)[::2],
    "reversed": lambda: BASE[::-1],
    "float16": lambda: BASE.astype(np.float16),
    "float32": lambda: BASE.astype(np.float32),
    "longdouble": lambda: BASE.astype(np.longdouble),
    "big-endian": lambda: BASE.astype(">f8"),
    "bool": lambda: BASE > 3,
    "objects": lambda: BASE.astype(object),
    "large integers": lambda: (BASE * 2**55).astype(np.int64),
    "uint64": lambda: np.full(BASE.shape, 2**64 - 1, dtype=np.uint64),
    "tiny": lambda: BASE * 1e-300,
    "denormal": lambda: BASE * 5e-320,
    "one row": lambda: BASE[:1],
    "two rows": lambda: BASE[:2],
    "no rows": lambda: BASE[:0],
    "no channels": lambda: BASE[:, :0],
    "three dimensions": lambda: BASE[None],
    "too many channels": lambda: np.hstack([BASE, BASE]),
    "one channel": lambda: BASE[:, :1],
    "duplicates": lambda: np.repeat(BASE[:10], 30, axis=0),
    "an empty channel": lambda: changed(column=1, value=np.nan),
    "nothing but NaN": lambda: np.full_like(BASE, np.nan),
    "holes": lambda: np.where(np.random.default_rng(0).random(BASE.shape) < 0.05, np.nan, BASE),
    "a long hole": lambda: changed(row=slice(100, 150), column=2, value=np.nan),
    "infinity": lambda: changed(row=50, column=0, value=np.inf),
    "none": lambda: None,
    "text": lambda: [["a", "b", "c"]] * 50,
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "masked": masked,
    "complex": lambda: BASE + 1j,
    "dates": lambda: (BASE * 1e9).astype("datetime64[ns]"),
    "beyond floats": lambda: [[10**400, 1, 2]] * 50,
    "1e308 once": lambda: changed(row=120, column=0, value=1e308),
    "1e160 once": lambda: changed(row=120, column=0, value=1e160),
    "both ends": lambda: changed(row=slice(120, 122), column=0, value=np.array([1e308, -1e308])),
    "1e308 everywhere": lambda: np.full_like(BASE, 1e308),
}


FOR_SLOW_FITS = ("1e308 everywhere", "all constant", "denormal")
FOR_SLOW = (
    *FOR_SLOW_FITS,
    "masked",
    "complex",
    "holes",
    "infinity",
    "beyond floats",
    "both ends",
    "one row",
    "float16",
)


def outcome(call):
    """None where it is fine, else the finding; our own errors are fine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except TisatError:
        return None
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:120]}"


def scores_of(detector, rows):
    scores = detector.decision_function(rows)
    return "an infinite score" if np.isinf(scores).any() else None


def verdicts_of(watch, rows):
    monitor = watch.monitor()
    for row in [rows] if rows is None else rows[90:130]:
        json.dumps(monitor.update(row).to_json(), allow_nan=False)
    monitor.to_bytes()


@pytest.mark.parametrize("name", registry.names())
def test_bad_input_is_fine_or_refused(name):
    cls = registry.resolve(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch(cls(**cls._test_params()).fit(BASE), budget="1/50 rows").calibrate()
    fitted = watch.detector
    slow = (
        hasattr(cls, "_network") or name == "arima"
    )  # the checks they share with all others are not repeated for each
    findings = {}
    for what, make in INPUTS.items():
        if slow and what not in FOR_SLOW:
            continue
        rows = make()
        if not slow or what in FOR_SLOW_FITS:
            findings[what, "fit"] = outcome(lambda rows=rows: scores_of(cls(**cls._test_params()).fit(rows), BASE))
        findings[what, "score"] = outcome(lambda rows=rows: scores_of(fitted, rows))
        if not slow or what in ("masked", "beyond floats", "both ends"):
            findings[what, "monitor"] = outcome(lambda rows=rows: verdicts_of(watch, rows))
    assert {where: found for where, found in findings.items() if found is not None} == {}


def test_what_is_masked_is_missing():
    cls = registry.resolve("last-value")
    fitted = cls().fit(BASE)
    hole = changed(row=100, column=1, value=np.nan)
    np.testing.assert_array_equal(fitted.decision_function(masked()), fitted.decision_function(hole))
