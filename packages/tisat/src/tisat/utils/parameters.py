"""Parameters, each declared once: a typed line with its default or presets, its bounds and its sentence.

A class that derives from :class:`Parametrized` (every detector and every alarm rule does) says what a user may set like this::

    class Distance(Detector):
        floor: float = real(1e-3, above=0.0, doc="Smallest spread, in units of the channel.")
        preset: str = presets(compact="sizes for two CPU cores", paper="section 4")
        window: int = integer(compact=40, paper=100, at_least=8, doc="Rows of one window.")
        max_windows: int | None = integer(compact=10_000, paper=None, at_least=1, none="all of them", doc="Training windows at most.")

From these lines come the constructor and its signature, ``get_params``, ``set_params``, ``clone`` and ``repr``, the check of
every value before it is used, the Parameters section of the docstring, ``--set`` on the command line and the tables of the
documentation. A subclass that redeclares a parameter inherits what it does not repeat; a plain number is a new default::

        epochs: int = 5

Numbers that differ between presets are looked up by the ``preset`` parameter. What the user did not say is
``FROM_PRESET``; None is a value of its own where a declaration says what it means, and refused elsewhere.

A class that writes its own ``__init__`` keeps it: it must store every argument under its name, as in scikit-learn.
What ``fit`` learns is declared with :func:`learned`, so that type checkers do not take it for a parameter.

This module knows no detector.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform, overload

from tisat.errors import ParameterError
from tisat.utils.declaration import FROM_PRESET as FROM_PRESET
from tisat.utils.declaration import NOT_SAID, Parameter
from tisat.utils.fitted_state import Learned
from tisat.utils.fitted_state import learned as learned
from tisat.utils.near_names import meant
from tisat.utils.types import Options, Params
from tisat.utils.validation import check_choice


class _Declared:
    """The attribute of a declared parameter: what the user said, or the preset's number where nothing was said."""

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self.parameter
        value = vars(instance).get(self.parameter.name, self.parameter.start)
        if value is FROM_PRESET:
            return (self.parameter.presets or {})[instance._chosen_preset()]
        return value

    def __set__(self, instance: Any, value: object) -> None:
        vars(instance)[self.parameter.name] = value


BOUNDS = ("above", "at_least", "below", "at_most")


def _declare(kind: str, default: Any, *, none: str | None = None, doc: str | None = None, **said: Any) -> Any:
    """Declare a parameter; keywords that are no bounds are values of presets."""
    bounds = {name: said.pop(name) for name in BOUNDS if name in said}
    return Parameter(kind, default, said or None, bounds or None, none=none, doc=doc)


@overload
def integer(default: int = ..., *, at_least: int | None = ..., at_most: int | None = ..., none: None = ..., doc: str | None = ..., **presets: int) -> int: ...  # fmt: skip
@overload
def integer(default: int | None = ..., *, at_least: int | None = ..., at_most: int | None = ..., none: str, doc: str | None = ..., **presets: int | None) -> int | None: ...  # fmt: skip
def integer(default: Any = NOT_SAID, **said: Any) -> Any:
    """A whole number; ``none`` says what None means, where it is allowed."""
    return _declare("integer", default, **said)


@overload
def real(default: float = ..., *, above: float | None = ..., at_least: float | None = ..., below: float | None = ..., at_most: float | None = ..., none: None = ..., doc: str | None = ..., **presets: float) -> float: ...  # fmt: skip
@overload
def real(default: float | None = ..., *, above: float | None = ..., at_least: float | None = ..., below: float | None = ..., at_most: float | None = ..., none: str, doc: str | None = ..., **presets: float | None) -> float | None: ...  # fmt: skip
def real(default: Any = NOT_SAID, **said: Any) -> Any:
    """A finite number."""
    return _declare("real", default, **said)


def choice(
    default: Any = NOT_SAID, *, of: Any = None, none: str | None = None, doc: str | None = None, **presets: str
) -> Any:
    """One of a few words."""
    return Parameter("choice", default, presets or None, None, None if of is None else tuple(of), none=none, doc=doc)


def presets(**meanings: str) -> Any:
    """The word that chooses between the numbers of the others: every preset and where its numbers come from, the default first."""
    doc = "; ".join(f"{name!r}: {meaning}" for name, meaning in meanings.items())
    return choice(next(iter(meanings)), of=meanings, doc=f"Where the numbers come from. {doc}.")


def flag(default: Any = NOT_SAID, **said: Any) -> Any:
    """True or False."""
    return _declare("flag", default, **said)


def integers(default: Any = NOT_SAID, **said: Any) -> Any:
    """At least one whole number, in a tuple."""
    return _declare("integers", default, **said)


def value(default: Any = NOT_SAID, **said: Any) -> Any:
    """Anything; the class checks it in ``_check_parameters``."""
    return _declare("value", default, **said)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(learned,))
class Parametrized:
    """A class whose parameters are declared: see the module docstring.

    Examples
    --------
    >>> class Threshold(Parametrized):
    ...     preset: str = presets(small="a trial", large="a year of rows")
    ...     level: int = integer(small=3, large=9, at_least=1, doc="The level.")
    >>> Threshold(preset="large").level, Threshold(level=5).get_params()
    (9, {'level': 5, 'preset': 'small'})
    >>> Threshold(level=0)._check_parameters()
    Traceback (most recent call last):
    ...
    tisat.errors.ParameterError: The 'level' parameter of Threshold must be an integer >= 1. Got 0 instead.
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {}  # by name, in the order they were declared
    _learns: ClassVar[Mapping[str, Learned]] = {}  # what fit sets, by name

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        inherited: dict[str, Parameter] = {}
        own: dict[str, Parameter] = {}
        learns: dict[str, Learned] = {}
        for base in reversed(cls.__mro__[1:]):
            inherited.update(vars(base).get("_parameters", {}))
            learns.update(vars(base).get("_learns", {}))
        for name, declared in list(vars(cls).items()):
            if isinstance(declared, Learned):
                delattr(cls, name)
                learns[name] = declared
            elif isinstance(declared, Parameter):
                own[name] = replace(declared.inherit(inherited[name]) if name in inherited else declared, name=name)
            elif name in inherited and not callable(declared):
                own[name] = replace(inherited[name], default=declared, presets=None)
        cls._parameters = {**inherited, **own}
        cls._learns = learns
        for name, parameter in own.items():
            setattr(cls, name, _Declared(parameter))
        if "__init__" not in vars(cls) and (own or cls.__init__ is object.__init__):
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]  # the point of declaring
        if cls.__doc__ and "__doc__" in vars(cls):
            cls.__doc__ = _with_parameters(cls.__doc__, _own_parameters(cls))

    def _chosen_preset(self) -> str:
        """The name of the preset in use."""
        return check_choice(vars(self).get("preset", type(self)._parameters["preset"].default), "preset", type(self).__name__, choices=preset_names(type(self)))  # fmt: skip

    def _check_parameters(self) -> None:
        """Refuse bad values.

        A subclass adds what two parameters must have in common, and calls ``super()`` first.
        """
        if preset_names(type(self)):
            self._chosen_preset()
        for name, parameter in self._parameters.items():
            parameter.check(getattr(self, name), type(self).__name__)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> Params:  # noqa: FBT001, FBT002 - scikit-learn's signature
        """The parameters as given; ``FROM_PRESET`` where the preset decides."""
        params = {
            name: vars(self)[name] if name in vars(self) else getattr(self, name) for name in self._get_param_names()
        }
        nested = {name: inner for name, inner in params.items() if deep and hasattr(inner, "get_params")}
        parts = {f"{name}__{key}": part for name, inner in nested.items() for key, part in inner.get_params().items()}
        return {**params, **parts}

    def set_params(self, **params: object) -> Self:
        """Say something else; an unknown name is refused, and then nothing is changed."""
        for name in params:
            if name.partition("__")[0] not in self._get_param_names():
                raise ParameterError(_unknown(type(self), name))
        for name, setting in params.items():
            outer, nested, inner = name.partition("__")
            if nested:
                getattr(self, outer).set_params(**{inner: setting})
            else:
                setattr(self, outer, setting)
        return self

    def _settings(self) -> Params:
        """The values in use, the preset's numbers included."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def __repr__(self, N_CHAR_MAX: int | None = None) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        said = self.get_params(deep=False).items()
        changed = (f"{name}={given!r}" for name, given in said if repr(given) != repr(signature[name].default))
        return f"{type(self).__name__}({', '.join(changed)})"


P = TypeVar("P", bound=Parametrized)


def clone(estimator: Any) -> Any:
    """Make the same estimator, not fitted, as scikit-learn's ``clone`` does (which takes ours as well, and a second to import)."""
    if isinstance(estimator, list | tuple):
        return type(estimator)(clone(part) for part in estimator)
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return copy.deepcopy(estimator)
    return type(estimator)(**{name: clone(said) for name, said in estimator.get_params(deep=False).items()})


def rebuild(cls: type[P], said: Options, presets: Options) -> P:
    """An instance from a file: what the user had said, and the numbers its preset had then.

    A number that the preset has changed since is set explicitly, so that an old file means what it meant.
    """
    instance = cls(**said)
    then = {name: given for name, given in presets.items() if name not in said}
    instance.set_params(**{name: given for name, given in then.items() if getattr(instance, name, None) != given})
    instance._check_parameters()
    return instance


def preset_names(cls: type[Parametrized]) -> tuple[str, ...]:
    """The presets of a class, the default first."""
    names: dict[str, None] = {}
    for parameter in cls._parameters.values():
        names.update(dict.fromkeys(parameter.presets or {}))
    return tuple(names)


def _own_parameters(cls: type[Parametrized]) -> dict[str, Parameter]:
    """The declared parameters that the constructor takes: a class with its own ``__init__`` may leave some out."""
    taken = inspect.signature(cls.__init__).parameters
    return {name: parameter for name, parameter in cls._parameters.items() if name in taken}


def _unknown(cls: type[Parametrized], name: str) -> str:
    known = cls._get_param_names()
    return f"{cls.__name__} must be given parameters it has: {', '.join(known) or 'none'}. Got {name!r} instead.{meant(name, known)}"


def _constructor(cls: type[Parametrized]) -> Any:
    declared = dict(cls._parameters)
    for name, parameter in declared.items():
        lacking = set(preset_names(cls)) - set(parameter.presets or preset_names(cls))
        if lacking:
            raise TypeError(
                f"{cls.__name__}.{name} must have a value for every preset. {', '.join(sorted(lacking))} lacks one."
            )

    def __init__(self: Parametrized, **given: object) -> None:  # noqa: N807
        for name in given:
            if name not in declared:
                raise TypeError(_unknown(type(self), name))
        for name, parameter in declared.items():
            if name not in given and parameter.start is NOT_SAID:
                raise TypeError(f"{cls.__name__} must be given {name!r}: {parameter.doc}")
            vars(self)[name] = given.get(name, parameter.start)

    arguments = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, parameter in declared.items():
        empty = inspect.Parameter.empty
        start = empty if parameter.start is NOT_SAID else parameter.start
        hint = next((vars(base)["__annotations__"][name] for base in cls.__mro__ if name in vars(base).get("__annotations__", {})), empty)  # fmt: skip
        arguments.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=start, annotation=hint))
    __init__.__signature__ = inspect.Signature(arguments, return_annotation=None)  # type: ignore[attr-defined]  # inspect looks here
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    return __init__


_SECTION = re.compile(r"^ *(Attributes|Notes|Examples|References|Methods|See Also|Warnings)\n *-+ *$", re.MULTILINE)


def _with_parameters(doc: str, declared: Mapping[str, Parameter]) -> str:
    """A numpy docstring with its Parameters section, made of the declarations."""
    if not declared or re.search(r"^ *Parameters\n *-+ *$", doc, re.MULTILINE):
        return doc
    lines = ["Parameters", "----------"]
    for name, parameter in declared.items():
        lines += [f"{name} : {parameter.domain()}; {parameter.values()}", f"    {parameter.doc}"]
    text = "\n".join(lines)
    clean = inspect.cleandoc(doc)
    match = _SECTION.search(clean)
    place = len(clean) if match is None else match.start()
    return f"{clean[:place].rstrip()}\n\n{text}\n\n{clean[place:]}".rstrip() + "\n"


def parameter_table(cls: type[Parametrized]) -> str:
    """The parameters of a class as a Markdown table: what each is, its default or presets, what it does.

    Examples
    --------
    >>> class Threshold(Parametrized):
    ...     level: int = integer(3, at_least=1, doc="The level.")
    >>> print(parameter_table(Threshold))
    | parameter | may be | default | what it does |
    |---|---|---|---|
    | `level` | int >= 1 | `3` | The level. |
    """
    presets = preset_names(cls)
    heads = ["parameter", "may be", *(presets or ("default",)), "what it does"]
    rows = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for name, parameter in _own_parameters(cls).items():
        if parameter.presets:
            cells = [f"`{parameter.presets[preset]!r}`" for preset in presets]
        else:
            cells = ["" if parameter.default is NOT_SAID else f"`{parameter.default!r}`"] * max(1, len(presets))
        domain = parameter.domain().replace("|", "\\|")
        rows.append(f"| `{name}` | {domain} | {' | '.join(cells)} | {parameter.doc} |")
    return "\n".join(rows)
