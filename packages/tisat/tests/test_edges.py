"""The packages at the top at their edges: files that are not whole, parameters that are not there, series nobody named."""

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

import tisat
from tisat import registry
from tisat.detectors import Ewma, LastValue, RandomGuess
from tisat.detectors.crossfit import MAX_POINTS, spread_stretches
from tisat.detectors.pipeline import Pipeline
from tisat.detectors.suggestions import _rhythm, suggest
from tisat.errors import ArtefactError, DataFileError, InputError, MissingExtraError, NotFittedError, ParameterError
from tisat.persistence import model_file as artefact
from tisat.testing.contracts import CONTRACTS, check_detector
from tisat.utils import extras as _extras
from tisat.utils import locking as _lock
from tisat.utils.fitted_state import Learned, check_arrays, check_layout, check_sizes, check_values
from tisat.utils.parameters import Parametrized, choice, integer, integers, presets, real
from tisat.utils.progress import progress
from tisat.watch import Watch

# ------------------------------------------------------------------ files


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    target = tmp_path / "a"
    artefact.write_bytes(target, b"old")
    monkeypatch.setattr(os, "fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        artefact.write_bytes(target, b"new")
    assert target.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["a"], "nothing is left behind"


def test_without_the_systems_word_files_are_readable_by_all_and_writable_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "Name: x\n")
    assert artefact._umask() == 0o022


def test_a_document_that_is_none_is_refused():
    content = artefact.pack_artefact({"kind": "x"}, {})
    assert artefact.unpack_artefact(content)[0] == {"kind": "x"}
    from safetensors.numpy import save

    for text in ("[1]", "nonsense", '{"format_version": 99}', '{"format_version": "1"}'):
        metadata = {"format": "tisat", "document": text, "checksum": artefact._checksum(text, {})}
        with pytest.raises(ArtefactError, match="must have format version <= 2"):
            artefact.unpack_artefact(save({}, metadata=metadata))


def test_a_file_of_something_else_is_no_detector_and_no_watch(tmp_path):
    artefact.write_artefact(tmp_path / "a.tisat", {"kind": "fleet"}, {})
    with pytest.raises(ArtefactError, match=r"must hold a detector. Got 'fleet'"):
        tisat.load(tmp_path / "a.tisat")
    with pytest.raises(ArtefactError, match=r"must hold a watch or a detector. Got 'fleet'"):
        Watch.load(tmp_path / "a.tisat")


def test_where_another_process_holds_the_lock_one_is_refused(tmp_path):
    refusal = InputError("taken")
    with _lock.locked(tmp_path / "lock", refusal), pytest.raises(InputError, match="taken"):  # noqa: SIM117
        with _lock.locked(tmp_path / "lock", refusal):
            pass
    with _lock.locked(tmp_path / "lock", refusal):
        pass  # it ended with its holder


# ------------------------------------------------------------------ what was learned, what was declared


@pytest.mark.parametrize(("arrays", "must"), [
    ({}, "must hold 'w_'. There is none"),
    ({"w_": np.zeros((2, 3)), "x_": np.zeros(1)}, "Got 'x_' besides"),
    ({"w_": np.zeros((2, 3), dtype=int)}, "must hold real numbers. Got int64"),
    ({"w_": np.zeros(2)}, r"shape \(K, C\) = \(any, 3\). Got \(2,\)"),
    ({"w_": np.full((2, 3), np.nan)}, "must hold finite numbers"),
    ({"w_": np.full((2, 3), -2.0)}, "must lie between -1 and 6. Got -2.0 to -2.0"),
    ({"w_": np.full((2, 3), 6.0)}, "must lie between -1 and 6. Got 6.0 to 6.0"),
])  # fmt: skip
def test_arrays_of_a_file_must_be_as_declared(arrays, must):
    table = {"w_": Learned("K, C", low=-1, high="K * C")}
    check_arrays(table, {"w_": np.full((2, 3), 5.0)}, {"C": 3}, whose="X")
    check_arrays(table, {"w_": np.zeros((0, 3))}, {"C": 3}, whose="X")
    with pytest.raises(ArtefactError, match=must):
        check_arrays(table, arrays, {"C": 3}, whose="X")
    with pytest.raises(TypeError, match="a size must be made of numbers"):
        check_arrays({"w_": Learned("K / 2")}, {"w_": np.zeros(1)}, {"K": 2}, whose="X")


@pytest.mark.parametrize(("plain", "must"), [
    ({}, "must hold 'n_'"), ({"n_": 1, "x_": 2}, "Got 'x_' besides"), ({"n_": 1.5}, "must be of type int. Got '1.5'"), ({"n_": True}, "must be of type int"),
])  # fmt: skip
def test_values_of_a_file_must_be_as_declared(plain, must):
    with pytest.raises(ArtefactError, match=must):
        check_values({"n_": Learned(), "w_": Learned("C")}, {"n_": "int"}, plain, whose="X")


@pytest.mark.parametrize(("found", "must"), [
    ({}, "must hold a. Got  instead"), ({"a": np.zeros(3)}, r"must be float64 of shape \(2,\)"), ({"a": np.array([0.0, 1e301])}, r"numbers up to 1e\+300"),
])  # fmt: skip
def test_a_state_must_have_the_layout_of_a_fresh_one(found, must):
    check_layout({"a": np.array([np.nan, 1.0])}, {"a": np.zeros(2)}, whose="x")
    with pytest.raises(ArtefactError, match=must):
        check_layout(found, {"a": np.zeros(2)}, whose="x")


def test_parameters_of_a_file_ask_for_no_more_than_a_machine_has():
    check_sizes({"window": 10, "more": {"random_state": 2**60, "sizes": (1, 2)}, "flag": True}, whose="X")
    for bad in ({"window": 10**9}, {"more": {"deep": [1, 10**9]}}, {"alpha": float("inf")}):
        with pytest.raises(ArtefactError, match="must be at most 10000000"):
            check_sizes(bad, whose="X")


class Outer(Parametrized):
    preset: str = presets(small="few", large="many")
    level: int = integer(small=1, large=5, at_least=1, doc="The level.")
    share: float = real(0.5, above=0.0, below=1.0, doc="The share.")
    sizes: tuple[int, ...] = integers((1, 2), at_least=1, doc="Sizes.")
    word: str | None = choice(None, of=("a", "b"), none="neither", doc="A word.")
    inner: object = None


class Lower(Outer):
    level: int = integer(at_most=9)
    share: float = 0.25


class Bare(Parametrized):
    count: int = integer(at_least=1, doc="How many.")


def test_a_declaration_inherits_what_it_does_not_repeat():
    assert (Outer(preset="large").level, Lower(preset="large").level, Lower().share) == (5, 5, 0.25)
    assert Outer.level.bounds == {"at_least": 1}, "of the class: the declaration"
    assert Lower._parameters["level"].doc == "The level."
    with pytest.raises(ParameterError, match=r"'level' parameter of Lower must be an integer <= 9. Got 10"):
        Lower(level=10)._check_parameters()
    with pytest.raises(TypeError, match=r"Bare must be given 'count': How many."):
        Bare()
    with pytest.raises(TypeError, match="Did you mean 'count'"):
        Bare(cout=3)
    assert Bare._parameters["count"].values() == "required"


@pytest.mark.parametrize(("said", "must"), [
    ({"sizes": ()}, "'sizes' parameter of Outer must be tuple of int >= 1. Got"), ({"sizes": (0,)}, "'sizes' parameter of Outer must be an integer >= 1. Got 0"),
    ({"sizes": 3}, "Got 3 instead"), ({"word": "c"}, r"one of 'a', 'b' or None \(neither\)"), ({"preset": "huge"}, "'preset' parameter of Outer must be one of 'small', 'large'"),
])  # fmt: skip
def test_what_was_not_declared_is_refused(said, must):
    with pytest.raises(ParameterError, match=must):
        Outer(**said)._check_parameters()
    Outer(word=None)._check_parameters()


def test_parameters_of_parts_are_set_through_the_whole():
    outer = Ewma()
    whole = Pipeline([("detector", outer)])
    whole.set_params(detector__smoothing=0.5)
    assert outer.smoothing == 0.5
    mine = type("Mine", (Outer,), {"inner": integer(0, none="none", doc="x")})
    one = mine(inner=Outer())
    one.set_params(inner__level=3)
    assert one.inner.level == 3
    assert one.get_params()["inner__level"] == 3
    with pytest.raises(ParameterError, match="must be given parameters it has"):
        one.set_params(outer__level=3)


# ------------------------------------------------------------------ detectors by name, and their contract tests


def test_a_class_that_cannot_be_found_again_is_not_registered():
    class Inside(RandomGuess):
        pass

    with pytest.raises(ParameterError, match="must be importable"):
        registry.register("inside", Inside)
    with pytest.raises(ParameterError, match=r"must be free. It already stands for"):
        registry.register("prism", RandomGuess)
    with pytest.raises(ParameterError, match="must be registered before it can be saved"):
        registry.name_of(Inside)


def test_a_contract_that_is_broken_is_named(monkeypatch):
    def broken(subject):
        raise AssertionError("it is")

    broken.__doc__ = "Nothing is ever wrong."
    for name in CONTRACTS:
        monkeypatch.setitem(CONTRACTS, name, lambda _: None)
    monkeypatch.setitem(CONTRACTS, "nothing_is_wrong", broken)
    with pytest.raises(
        AssertionError, match="RandomGuess breaks the contract 'nothing_is_wrong': Nothing is ever wrong"
    ):
        check_detector(RandomGuess)


def test_what_is_missing_is_missed_with_its_command(monkeypatch):
    with pytest.raises(MissingExtraError, match=r"X needs nowhere. Install it with: pip install nowhere"):
        _extras.require("nowhere.to.be.found", whose="X")

    def broken(name):
        raise ImportError("inside", name="elsewhere")

    monkeypatch.setattr(_extras, "import_module", broken)
    with pytest.raises(ImportError, match="inside") as raised:
        _extras.require("torch", whose="X")
    assert not isinstance(raised.value, MissingExtraError), "it is there, and broken: another story"


def test_a_bar_on_a_terminal_and_nowhere_else(terminal, capsys):
    with progress("training", total=3) as bar:
        bar.advance(note="x")
    assert capsys.readouterr().err == ""

    screen = terminal()
    with progress("training", total=3) as bar:
        bar.advance(2, note="loss 0.5")
    assert "training" in screen.getvalue()
    assert "loss 0.5" in screen.getvalue()
    with progress("training", total=3, disable=True) as bar:
        bar.advance()


def test_python_m_tisat_is_the_command(monkeypatch):
    called = []
    monkeypatch.setattr("tisat.cli.main", lambda *_: called.append(True))
    importlib.import_module("tisat.__main__")
    assert called == [True]
    sys.modules.pop("tisat.__main__")


# ------------------------------------------------------------------ series and what to try on them


def test_a_clock_or_a_counter_that_nobody_named_is_no_channel(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("when,row,flow\n" + "".join(f"{1_770_000_000 + 60 * i},{i},{i % 7}\n" for i in range(40)))
    found = tisat.Series.read(file)
    assert (found.channels, found.period) == (("flow",), 60.0)
    assert any("'when' is plainly a clock and was taken for the time" in note for note in found.notes)
    assert any("'row' is plainly a counter of rows and was left out" in note for note in found.notes)
    kept = tisat.Series.read(file, channels=["when", "row"])
    assert (kept.channels, kept.timestamps) == (("when", "row"), None)
    file.write_text("time,when,flow\n" + "".join(f"{i},{1_770_000_000 + 60 * i},{i % 7}\n" for i in range(40)))
    assert tisat.Series.read(file).channels == ("flow",), "there is a time already: the second clock is left out"


def test_a_file_of_several_is_not_one_series(tmp_path, monkeypatch):
    file = tmp_path / "a.csv"
    file.write_text("machine,flow\na,1\nb,2\n")
    with pytest.raises(DataFileError, match=r"must hold one series here. Got 2; read_all"):
        tisat.Series.read(file, entity="machine")
    assert {name: one.values.tolist() for name, one in tisat.Series.read_all(file, entity="machine").items()} == {"a": [[1.0]], "b": [[2.0]]}  # fmt: skip
    monkeypatch.setattr("tisat.series.read_columns", lambda *_: (_ for _ in ()).throw(MemoryError()))
    with pytest.raises(DataFileError, match="must fit in memory"):
        tisat.Series.read(file)


def test_a_channel_without_values_has_no_range():
    page = tisat.Series([[np.nan, 1.0], [np.nan, 3.0]], channels=("empty", "b"))._repr_html_()
    assert "nan" in page
    assert ">2<" in page


def test_a_fleet_of_short_parts_is_scored_on_all_of_them():
    parts = [np.zeros((2 * MAX_POINTS // 8, 1)) for _ in range(7)] + [np.zeros((1, 1)), np.zeros((2 * MAX_POINTS // 8, 1))]  # fmt: skip
    rest, here = spread_stretches(parts, context=3)
    assert sum(map(len, rest)) + sum(len(rows) - before for rows, before in here) == sum(map(len, parts))
    assert all(before <= 3 for _, before in here)


def test_rhythms_and_what_has_none():
    t = np.arange(600.0)
    strength, lag = _rhythm(np.sin(2 * np.pi * t / 50))
    assert (round(strength, 1), lag) == (1.0, 50)
    assert _rhythm(np.zeros(100)) == (0.0, 0)
    assert _rhythm(np.repeat([0.0, 1.0], 12))[0] < 0.5, "one step, after which nothing comes back"
    assert "prism" in str(suggest(np.random.default_rng(0).normal(size=(600, 1))))
    rng = np.random.default_rng(0)
    for length in (22, 25, 30):
        for _ in range(50):
            assert _rhythm(np.cumsum(rng.normal(size=length)))[0] >= 0.0, "few rows are no reason to fall over"
    labelled = tisat.Series(np.sin(t)[:, None], labels=(t > 590))
    assert "It has 1 labelled events" in str(suggest(labelled))
    many = suggest(np.random.default_rng(0).normal(size=(20_000, 1)))
    assert many.detectors[-1].detector == "tisat"
    assert json.loads(json.dumps(many.to_json()))["detectors"][-1]["command"].startswith("tisat fit --detector tisat")


class Doubling(TransformerMixin, BaseEstimator):
    """A transformer that names nothing."""

    def fit(self, rows, y=None):
        return self

    def transform(self, rows):
        return np.hstack([rows, rows])


class Dropping(Doubling):
    def transform(self, rows):
        return np.asarray(rows)[1:]


def test_steps_that_name_nothing_and_steps_that_lose_rows():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    several = [rows[:30], rows[30:]]
    made = Pipeline([("double", Doubling()), ("detector", LastValue())]).fit(several)
    assert made.prepare(rows).channels == ("0", "1", "2", "3")
    named = tisat.Series(rows, channels=("a", "b"))
    assert Pipeline([("double", Doubling()), ("detector", LastValue())]).fit(named).prepare(named).n_channels == 4
    with pytest.raises(InputError, match=r"Dropping of a Pipeline must give a row for each row \(60\)"):
        Pipeline([("drop", Dropping()), ("detector", LastValue())]).fit(rows)
    with pytest.raises(ParameterError, match="last step of a tisat Pipeline must be a detector"):
        Pipeline([("double", Doubling())]).fit(rows)
    with pytest.raises(ParameterError, match="must begin with 'detector__'"):
        Pipeline([("detector", LastValue())]).fit(rows, holdout=0.1)


def test_without_pandas_a_pipeline_goes_by_position(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    named = tisat.Series(np.random.default_rng(0).normal(size=(60, 2)), channels=("a", "b"))
    assert len(Pipeline([("double", Doubling()), ("detector", LastValue())]).fit(named).decision_function(named)) == 60


def test_an_unfitted_watch_is_refused():
    with pytest.raises(NotFittedError, match="must be fitted first"):
        Watch("last-value").calibration  # noqa: B018


def test_long_work_reports_in_lines_where_there_is_no_terminal(caplog, monkeypatch):
    from tisat.utils import progress as module

    now = iter([0.0, 4.0, 12.0, 13.0, 30.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    with caplog.at_level("INFO", logger="tisat.training"), module.progress("scanning", total=4, lines=True) as bar:
        for _ in range(4):
            bar.advance()
    assert caplog.messages == ["scanning: 50 %, about 12 s left"]  # every ten seconds, and not at the end


def test_a_long_fit_counts_its_models(caplog, monkeypatch):
    from tisat.detectors import Mahalanobis, crossfit
    from tisat.utils import progress as module

    monkeypatch.setattr(module, "SECONDS", 0.0)
    normal = np.random.default_rng(0).normal(size=(400, 2))
    with caplog.at_level("INFO", logger="tisat.training"):
        Mahalanobis().fit(normal)
        assert caplog.messages == []  # few values
        monkeypatch.setattr(crossfit, "MANY_VALUES", 100)
        with module.progress("scanning", total=2):
            Mahalanobis().fit(normal)
        assert caplog.messages == []  # within another
        Mahalanobis().fit(normal)
    assert [words.partition(",")[0] for words in caplog.messages] == [f"fit: model {n} of 6" for n in range(2, 7)]
