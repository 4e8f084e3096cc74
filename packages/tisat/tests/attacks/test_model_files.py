"""Files from new users: damaged and forged models of every detector give one ArtefactError, or a model that scores.

A raw mutant is a damaged file. A forged one carries a fresh checksum, as somebody who means harm would write it: parameters,
learned values and arrays are changed one at a time to what has broken such programs before.
"""

import contextlib
import copy
import json
import os
import warnings
from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from tisat import registry
from tisat.errors import ArtefactError, InputError
from tisat.io.files import Reading
from tisat.persistence import estimator
from tisat.persistence.model_file import pack_artefact, unpack_artefact
from tisat.testing import contracts as checks
from tisat.watch import Monitor, Watch
from tisat.watch.text_stream import LineReader

QUICK, MANY = 700, 20_000  # mutants over all detectors
SAVED = os.environ.get("TISAT_MUTANTS", "")  # a folder for the mutants that loaded and gave something else
VALUES = [
    0, -1, 1, 2**31 - 1, -(2**31), 2**63, 10**9, 10**400, 1e308, -1e308, "x", "", None, True, [], {}, [[]], [1, 2, 3],
    {"a": 1}, "\0", "9" * 5000, 0.5, ["a"] * 50,
]  # fmt: skip


@lru_cache
def document_of(name):
    cls = registry.resolve(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = Watch(cls(**cls._test_params()), budget="1/40 rows").fit(checks.example(300, channels=2, seed=1))
        watch.reading = {
            "time": "time",
            "drop": ["host"],
            "sort": True,
            "seen": {"delimiter": ";", "encoding": "cp1252"},
        }
        document, tensors = estimator.document_of(watch.detector)
        return {**document, "kind": "watch", "watch": watch.to_json()}, tensors


def places(value, path=()):
    """Every place of a document where something stands."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def drawn_place(document, rng):
    """A place to change: every section of the document as often as the others, however small it is."""
    sections = {}
    for path in places(document):
        if path:
            sections.setdefault(path[: 2 if path[0] in ("watch", "state") else 1], []).append(path)
    section = sections[list(sections)[int(rng.integers(len(sections)))]]
    return section[int(rng.integers(len(section)))]


def other_structure(value, rng):
    """A value of another structure: in a list, doubled, emptied, deeply nested, as text, as a key."""
    kind = int(rng.integers(6))
    if kind == 0:
        return [value]
    if kind == 1:
        return {"x": value}
    if kind == 2:
        return str(value)
    if kind == 3 and isinstance(value, list) and value:
        return value + value
    if kind == 4 and isinstance(value, int | float) and not isinstance(value, bool):
        return value * float(rng.choice([-1.0, 0.0, 1e3, 1e9, 1e300, 1e-300]))
    nested = value
    for _ in range(50):
        nested = [nested]
    return nested


def replaced(document, path, value, rng):
    changed = copy.deepcopy(document)
    changed = _lists(changed)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    if rng.random() < 0.2 and isinstance(parent, dict):
        del parent[path[-1]]
    elif rng.random() < 0.4:
        parent[path[-1]] = other_structure(parent[path[-1]], rng)
    else:
        parent[path[-1]] = value
    return changed


def _lists(value):
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value


def forged_array(array, rng):
    kind = rng.integers(8)
    if array.dtype == np.float32 and kind > 3:
        return np.where(
            np.arange(array.size).reshape(array.shape) == 0, rng.choice([np.nan, np.inf, 1e30]), array
        ).astype(np.float32)
    if kind == 0:
        return array.reshape(-1)[: max(array.size // 2, 0)]
    if kind == 1:
        return np.zeros((0, *array.shape[1:]), dtype=array.dtype) if array.ndim else np.zeros(0)
    if kind == 2:
        return array.astype(np.int64) if array.dtype.kind == "f" else array.astype(np.float64)
    if kind == 3:
        return array[None]
    changed = np.array(array)
    if changed.size == 0:
        return np.full(3, 7.0)
    at = int(rng.integers(changed.size))
    if changed.dtype.kind in "iu":
        changed.reshape(-1)[at] = rng.choice([-1, 0, np.iinfo(changed.dtype).max, np.iinfo(changed.dtype).min, 2**20])
    elif changed.dtype.kind == "f":
        changed.reshape(-1)[at] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e30, 0.0])
    if kind == 4:
        changed = np.concatenate([changed, changed]) if changed.ndim else changed
    if kind == 5 and changed.ndim:
        changed = changed[::-1]
    return changed


def mutant(name, rng):
    """A forged or damaged file, and which part of it was changed."""
    document, tensors = document_of(name)
    if rng.random() < 0.25:  # a damaged file
        content = bytearray(pack_artefact(document, tensors))
        if rng.random() < 0.3:
            content = content[: int(rng.integers(len(content)))]
        for _ in range(int(rng.integers(1, 4))):
            if content:
                content[int(rng.integers(min(len(content), 4096) if rng.random() < 0.5 else len(content)))] ^= int(
                    rng.integers(1, 256)
                )
        return bytes(content), "raw bytes"
    if rng.random() < 0.5:
        path = drawn_place(document, rng)
        part = ".".join(map(str, path[:2]))
        document = replaced(document, path, VALUES[int(rng.integers(len(VALUES)))], rng)
    else:
        names = sorted(tensors)
        which = names[int(rng.integers(len(names)))]
        part = f"array {which}"
        tensors = {**tensors, which: forged_array(tensors[which], rng)}
        if rng.random() < 0.1:
            del tensors[which]
        if rng.random() < 0.1:
            tensors["stranger_"] = np.zeros(3)
    with contextlib.suppress(ArtefactError):
        return pack_artefact(document, tensors), part
    return b"", part


def used(watch, rows):
    """Everything a user would do with a model that was loaded: print, draw from, score, watch, and save it."""
    str(watch.calibration), repr(watch), watch.calibration.words, json.dumps(watch.to_json(), allow_nan=False)
    watch.detector.decision_function(rows)
    alarms = watch.alarms(rows)
    LineReader(watch.channels, how=Reading.of(watch.reading))
    monitor = watch.monitor()
    for row in rows[:3]:
        json.dumps(monitor.update(row).to_json(), allow_nan=False)
    monitor.to_bytes()
    document, tensors = estimator.document_of(watch.detector)
    pack_artefact({**document, "watch": watch.to_json()}, tensors)
    return np.nan_to_num(alarms.statistic).tobytes() + np.nan_to_num(alarms.thresholds).tobytes()


def attack(name, count, seed):
    """The findings among so many mutants (neither a model nor one of our sentences), and what became of each part of a file."""
    rng = np.random.default_rng(seed)
    findings, outcomes = [], Counter()
    rows = checks.example(130, channels=2, seed=2)  # beyond any warm-up
    whole = used(Watch.of_document(*unpack_artefact(pack_artefact(*document_of(name))), path="whole"), rows)
    for number in range(count):
        content, part = mutant(name, rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                watch = Watch.of_document(*unpack_artefact(content), path="mutant")
                outcome = "loaded, same" if used(watch, rows) == whole else "loaded, other results"
        except ArtefactError:
            outcome = "refused"
        except InputError:
            outcome = "loaded, refuses rows"  # its own channels, or too short
        except BaseException as error:
            outcome = "finding"
            findings.append((number, part, type(error).__name__, str(error)[:200]))
        outcomes[part, outcome] += 1
        if outcome not in ("refused", "loaded, same") and SAVED:
            (Path(SAVED) / f"{name}-{seed}-{number}.tisat").write_bytes(content)
    return findings, outcomes


@pytest.mark.parametrize("name", registry.names())
def test_mutants_are_refused_or_harmless(name):
    findings, outcomes = attack(name, QUICK // len(registry.names()) + 1, seed=len(name))
    assert findings == []
    assert any(outcome == "refused" for _, outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_many_mutants_are_refused_or_harmless(name):
    findings, outcomes = attack(name, MANY // len(registry.names()) + 1, seed=1000 + len(name))
    for (part, outcome), count in sorted(outcomes.items()):
        print(f"{name}\t{part}\t{outcome}\t{count}")
    assert findings == []


@pytest.mark.parametrize("name", ["ewma", "prism", "tisat"])
@pytest.mark.parametrize("field", ["threshold", "target", "largest", "supported", "low", "alarms", "levels", "unit"])
def test_figures_that_do_not_follow_from_the_levels_are_refused(name, field):
    """A thousandth is enough: the calibrated threshold is recomputed from the levels in the file."""
    if name == "tisat":
        pytest.importorskip("torch")
    document, tensors = document_of(name)
    changed = _lists(copy.deepcopy(document))
    kept = changed["watch"]["calibration"]
    if field == "levels":
        kept["normal"]["levels"] = [[1.001 * level for level in one] for one in kept["normal"]["levels"]]
    elif field == "unit":
        kept["compression"] = (
            [0.0, 1.001] if kept["compression"] is None else [kept["compression"][0], 1.001 * kept["compression"][1]]
        )
    else:
        kept[field] = kept[field] + 1 if field == "alarms" else 1.001 * kept[field]
    with pytest.raises(ArtefactError, match="calibration must"):
        Watch.of_document(*unpack_artefact(pack_artefact(changed, tensors)), path="forged")


FORGED = [
    (("watch", "calibration", "largest"), "x"), (("watch", "calibration", "high"), [1]),
    (("watch", "calibration", "target"), "x"), (("watch", "calibration", "supported"), 0),
    (("watch", "calibration", "threshold"), 1e299), (("watch", "calibration", "threshold"), -5),
    (("watch", "options", "hold"), 10**9), (("watch", "options", "lag"), 10**9), (("watch", "options", "length"), 10**9),
    (("watch", "options", "window"), 10**9), (("watch", "options", "lasting"), 10**9), (("watch", "period"), 10**400),
    (("state", "trained_on_", "period_seconds"), 10**400), (("watch", "reading"), {"time": 5}),
    (("watch", "control"), "x"), (("watch", "control"), 1), (("watch", "budget"), "soon"), (("watch", "budget"), [1]),
    (("state", "trained_on_", "moves_every"), 1.5), (("state", "trained_on_", "counters"), 7), (("state", "trained_on_", "rows"), "x"),
    (("state", "trained_on_", "series"), 5.0), (("state", "trained_on_", "start"), []),
    (("watch", "reading"), {"seen": {"encoding": 5}}), (("watch", "random_state"), -1), (("watch", "method"), "x"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), FORGED, ids=lambda one: ".".join(one) if isinstance(one, tuple) else None)
def test_what_was_found_forged_is_refused_at_load(path, value):
    document, tensors = document_of("ewma")
    changed = _lists(copy.deepcopy(document))
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    with pytest.raises(ArtefactError):
        Watch.of_document(*unpack_artefact(pack_artefact(changed, tensors)), path="forged")


CONSISTENT = {  # arrays of prism's views that agree with one another and not with what is computed from them
    "relations": {"relations.weights": (0, 2)}, "rhythm": {"rhythm.usual": (3, 2), "rhythm.whitening": (3, 3, 2)},
    "neighbour": {"neighbour.centre": (10,), "neighbour.basis": (10, 4), "neighbour.stored": (9, 4), "neighbour.when": (9,)},
    "joint": {"joint.shapes": (5, 3), "joint.when": (5,)},
}  # fmt: skip


@pytest.mark.parametrize("view", CONSISTENT)
def test_sizes_that_a_file_may_not_choose_are_refused(view):
    """The rhythm's loops are compiled and count to their own number of lags: fewer in a file would be foreign memory."""
    document, tensors = document_of("prism")
    forged = {name: np.ones(shape) for name, shape in CONSISTENT[view].items()}
    assert set(forged) <= set(tensors)
    with pytest.raises(ArtefactError, match="must fit together"):
        Watch.of_document(*unpack_artefact(pack_artefact(document, {**tensors, **forged})), path="forged")


@pytest.mark.parametrize("place", ["params", "presets"])
def test_a_network_of_ten_million_layers_is_refused_before_it_is_built(place):
    pytest.importorskip("torch")
    document, tensors = document_of("tisat")
    changed = _lists(copy.deepcopy(document))
    changed["presets"].pop("decoder_layers", None)
    changed["params"].pop("decoder_layers", None)
    changed[place]["decoder_layers"] = 10_000_000
    with pytest.raises(ArtefactError, match="at most 1000"):
        Watch.of_document(*unpack_artefact(pack_artefact(changed, tensors)), path="forged")


def test_the_unchanged_file_is_a_model():
    watch = Watch.of_document(*unpack_artefact(pack_artefact(*document_of("isolation-forest"))), path="whole")
    assert np.isfinite(watch.detector.decision_function(checks.example(60, channels=2, seed=2))).any()


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [("left_", 0, 2**31 - 1), ("left_", 0, 0), ("feature_", 0, 2**30), ("roots_", 0, 10**6), ("right_", 0, -5)],
)
def test_no_index_from_a_file_reaches_compiled_code(name, index, value):
    document, tensors = document_of("isolation-forest")
    changed = np.array(tensors[name])
    changed[index] = value
    with pytest.raises(ArtefactError):
        Watch.of_document(*unpack_artefact(pack_artefact(document, {**tensors, name: changed})), path="forged")


@lru_cache
def state_of(name):
    document, tensors = document_of(name)
    watch = Watch.of_document(*unpack_artefact(pack_artefact(document, tensors)), path="whole")
    monitor = watch.monitor(name="pump")
    rows = checks.example(90, channels=2, seed=3)
    rows[80:] += 50.0 * np.arange(10)[:, None]  # an alarm is on
    for second, row in enumerate(rows):
        monitor.update(row, time=60.0 * second)
    assert monitor.alarm is not None
    return watch, unpack_artefact(monitor.to_bytes())


@pytest.mark.parametrize("name", ["linear-last", "ewma", "prism", "mahalanobis"])
def test_forged_states_are_refused_or_harmless(name):
    watch, (document, tensors) = state_of(name)
    rng = np.random.default_rng(7)
    findings, refused = [], 0
    for number in range(100):
        header, arrays = document, dict(tensors)
        if rng.random() < 0.6:
            header = replaced(header, drawn_place(header, rng), VALUES[int(rng.integers(len(VALUES)))], rng)
        else:
            which = sorted(arrays)[int(rng.integers(len(arrays)))]
            arrays[which] = forged_array(arrays[which], rng)
        try:
            monitor = Monitor.load(watch, pack_artefact(header, arrays))
        except ArtefactError:
            refused += 1
            continue
        except BaseException as error:
            findings.append((number, "restore", type(error).__name__, str(error)[:200]))
            continue
        try:
            with contextlib.suppress(InputError), warnings.catch_warnings():  # a state that remembers another time
                warnings.simplefilter("ignore")
                str(monitor.alarm), monitor.tally, monitor.trouble
                json.dumps(monitor.update([3.0, 4.0], time=60.0 * 91).to_json(), allow_nan=False)
                monitor.to_bytes()
        except BaseException as error:
            findings.append((number, "use", type(error).__name__, str(error)[:200]))
    assert findings == []
    assert refused > 20
