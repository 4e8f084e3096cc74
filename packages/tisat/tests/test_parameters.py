"""One declared line a parameter: constructor, checks, presets, inheritance and files all come from it."""

import copy
import importlib.util
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from tisat import registry
from tisat.detectors.base import Detector
from tisat.errors import ParameterError
from tisat.utils.parameters import (
    FROM_PRESET,
    Parametrized,
    choice,
    flag,
    integer,
    integers,
    learned,
    parameter_table,
    preset_names,
    real,
    rebuild,
    value,
)


class Small(Parametrized):
    """A class with one parameter of each kind.

    Examples
    --------
    Nothing to run.
    """

    preset: str = choice("compact", of=("compact", "paper"), doc="Where the numbers come from.")
    window: int = integer(compact=8, paper=100, at_least=2, at_most=500, doc="Rows.")
    limit: int | None = integer(compact=50, paper=None, at_least=1, none="all of them", doc="Windows at most.")
    rate: float = real(0.1, above=0.0, below=1.0, doc="A rate.")
    filters: tuple[int, ...] = integers((4, 8), at_least=1, doc="Widths.")
    fast: bool = flag(False, doc="Hurry.")
    model: object = value(None, none="the usual one", doc="A model.")
    weights_: list[float] = learned()


class Smaller(Small):
    """Other defaults, the same bounds and sentences."""

    window: int = integer(compact=4, paper=10)
    rate: float = 0.5


def test_the_signature_is_what_was_declared_and_only_keywords():
    signature = inspect.signature(Small)
    assert list(signature.parameters) == ["preset", "window", "limit", "rate", "filters", "fast", "model"]
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in signature.parameters.values())
    assert signature.parameters["rate"].default == 0.1
    assert signature.parameters["window"].default is FROM_PRESET
    assert signature.parameters["window"].annotation in ("int", int)
    with pytest.raises(TypeError):
        Small(3)


def test_an_unknown_name_is_refused_with_the_one_that_was_meant():
    with pytest.raises(TypeError, match=r"Got 'windw' instead. Did you mean 'window'\?"):
        Small(windw=3)
    with pytest.raises(ParameterError, match="Got 'windw' instead"):
        Small().set_params(rate=0.3, windw=3)
    assert Small().rate == 0.1


def test_none_is_no_limit_and_not_the_preset():
    assert Small().limit == 50
    assert Small(limit=None).limit is None
    assert Small(preset="paper").limit is None
    assert Small(preset="paper", limit=7).limit == 7
    assert Small(limit=None).get_params()["limit"] is None
    assert Small().get_params()["limit"] is FROM_PRESET
    Small(limit=None)._check_parameters()
    with pytest.raises(ParameterError, match=r"must be an integer >= 1 or None \(all of them\). Got 0 instead."):
        Small(limit=0)._check_parameters()
    with pytest.raises(ParameterError, match=r"must be an integer from 2 to 500\. Got None"):
        Small(window=None)._check_parameters()


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("preset", "huge"), ("window", 1), ("window", 501), ("window", 3.0), ("window", True), ("rate", 0.0), ("rate", 1.0),
        ("rate", "x"), ("filters", ()), ("filters", (4, 0)), ("filters", 4), ("fast", 1), ("rate", None),
    ],
)  # fmt: skip
def test_a_value_that_was_not_declared_is_refused(name, bad):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of Small must be .* Got "):
        Small(**{name: bad})._check_parameters()


def test_what_is_not_repeated_is_inherited():
    assert (Smaller().window, Smaller(preset="paper").window, Smaller().rate) == (4, 10, 0.5)
    assert Smaller._parameters["window"].doc == "Rows."
    with pytest.raises(ParameterError, match="'window' parameter of Smaller must be an integer from 2 to 500"):
        Smaller(window=1)._check_parameters()
    with pytest.raises(ParameterError, match="'rate' parameter of Smaller"):
        Smaller(rate=1.0)._check_parameters()
    assert Small().rate == 0.1


def test_a_preset_without_a_value_is_an_error_of_the_class():
    with pytest.raises(TypeError, match=r"must have a value for every preset\. paper lacks one"):

        class Broken(Small):
            window: int = integer(compact=4)


def test_copies_keep_what_was_said():
    said = Small(preset="paper", window=9, limit=None)
    for again in (clone(said), copy.deepcopy(said), pickle.loads(pickle.dumps(said))):
        assert again.get_params() == said.get_params()
        assert repr(again) == "Small(limit=None, preset='paper', window=9)"
    assert pickle.loads(pickle.dumps(FROM_PRESET)) is FROM_PRESET


def test_a_file_means_what_it_meant_when_presets_have_changed_since():
    again = rebuild(Small, {"rate": 0.3, "preset": "compact"}, {"window": 16, "limit": 50})
    assert (again.window, again.limit, again.rate) == (16, 50, 0.3)
    assert repr(again) == "Small(rate=0.3, window=16)"
    with pytest.raises(ParameterError):
        rebuild(Small, {"rate": 7.0}, {})


def test_the_docstring_and_the_table_say_what_was_declared():
    text = inspect.getdoc(Small)
    assert text.index("Parameters\n------") < text.index("Examples\n-----")
    assert "window : int >= 2 and <= 500; 8 (compact), 100 (paper)\n    Rows." in text
    assert "limit : int >= 1, or None: all of them; 50 (compact), None (paper)" in text
    rows = parameter_table(Small).splitlines()
    assert rows[0] == "| parameter | may be | compact | paper | what it does |"
    assert rows[3] == "| `window` | int >= 2 and <= 500 | `8` | `100` | Rows. |"
    assert preset_names(Small) == ("compact", "paper")


def test_learned_attributes_are_no_parameters():
    assert not hasattr(Small(), "weights_")
    assert "weights_" not in Small().get_params()


def test_a_class_with_its_own_constructor_keeps_it():
    class Own(Detector):
        def __init__(self, level, *, window=3):
            self.level = level
            self.window = window

        def _fit(self, parts):
            self.mean_ = np.concatenate(parts).mean(axis=0)

        def _points(self, part):
            return np.abs(part - self.mean_).max(axis=1, keepdims=True)

        def _context(self):
            return 0

    assert Own(2.0).get_params() == {"level": 2.0, "window": 3}
    assert repr(Own(2.0, window=4)) == "Own(level=2.0, window=4)"
    assert clone(Own(2.0)).level == 2.0


@pytest.mark.parametrize("name", registry.names())
def test_every_detector_documents_and_checks_its_parameters(name):
    cls = registry.resolve(name)
    text = inspect.getdoc(cls)
    for parameter in cls._get_param_names():
        assert parameter in text, f"{cls.__name__} does not say what {parameter} is"
    cls()._check_parameters()


def test_the_pages_show_the_declared_parameters():
    """Fix with: python docs/parameters.py"""
    path = Path(__file__).parents[3] / "docs" / "parameters.py"
    spec = importlib.util.spec_from_file_location("docs_parameters", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for page, table in tool.tables().items():
        if not page.is_file():
            continue  # another test asks for it
        text = page.read_text(encoding="utf-8")
        assert tool.with_table(text, table) == text, (
            f"{page.name} does not show its parameters: python docs/parameters.py"
        )
