"""One parameter: what it may be, what it is when nothing is said, and how both are put in words.

How a class declares its parameters is the business of :mod:`tisat.utils.parameters`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields, replace
from typing import Any

from tisat.errors import ParameterError
from tisat.utils.types import JsonDict, Options
from tisat.utils.validation import check_choice, check_flag, check_integer, check_real

_KINDS = {"integer": "int", "real": "float", "flag": "bool", "integers": "tuple of int", "value": "object"}


class _Unset(enum.Enum):
    FROM_PRESET = "preset"

    def __repr__(self) -> str:
        return self.name


FROM_PRESET = _Unset.FROM_PRESET  # "the number of the preset": the default of a parameter that has presets
NOT_SAID: Any = object()


@dataclass(frozen=True)
class Parameter:
    """One declared parameter: what it may be and what it is when nothing is said.

    None here: as the base class says.
    """

    kind: str | None = None  # "integer", "real", "choice", "flag", "integers" or "value"
    default: Any = NOT_SAID
    presets: Options | None = None  # preset -> value
    bounds: Options | None = None  # of check_integer or check_real, by their argument names
    choices: tuple[str, ...] | None = None
    none: str | None = None  # what None means; None is refused where this is not said
    doc: str | None = None
    name: str = ""

    @property
    def start(self) -> Any:
        """The default that the constructor stores."""
        return FROM_PRESET if self.presets else self.default

    def inherit(self, base: Parameter) -> Parameter:
        """The declaration, completed by the one it overrides."""
        changes: JsonDict = {}
        for field in fields(self):
            mine = getattr(self, field.name)
            if field.name not in ("default", "presets", "name") and mine is None:
                changes[field.name] = getattr(base, field.name)
        if self.default is NOT_SAID and not self.presets:
            changes.update(default=base.default, presets=base.presets)
        return replace(self, **changes)

    def check(self, value: object, whose: str) -> None:
        """Refuse a value that is not what was declared."""
        if value is FROM_PRESET and self.presets:
            return
        if value is None and self.none is not None:
            return
        bounds, also = dict(self.bounds or {}), "" if self.none is None else f" or None ({self.none})"
        if self.kind == "integer":
            check_integer(
                value, self.name, whose, minimum=bounds.get("at_least"), maximum=bounds.get("at_most"), also=also
            )
        elif self.kind == "real":
            check_real(value, self.name, whose, **bounds, also=also)
        elif self.kind == "choice":
            check_choice(value, self.name, whose, choices=self.choices or (), also=also)
        elif self.kind == "flag":
            check_flag(value, self.name, whose)
        elif self.kind == "integers":
            if not isinstance(value, tuple | list) or not value:
                raise ParameterError.about(self.name, f"must be {self.domain()}. Got {value!r} instead.", whose=whose)
            for one in value:
                check_integer(one, self.name, whose, minimum=bounds.get("at_least"), maximum=bounds.get("at_most"))

    def domain(self) -> str:
        """The allowed values, in words.

        Examples
        --------
        >>> Parameter("integer", bounds={"at_least": 1}, none="all of them").domain()
        'int >= 1, or None: all of them'
        """
        words = {"at_least": ">=", "at_most": "<=", "above": ">", "below": "<"}
        limits = [
            f"{words[name]} {bound if isinstance(bound, int) else format(bound, 'g')}"
            for name, bound in (self.bounds or {}).items()
        ]
        if self.kind == "choice":
            said = "{" + ", ".join(repr(choice) for choice in self.choices or ()) + "}"
        else:
            said = " ".join([_KINDS.get(self.kind or "value", "object"), " and ".join(limits)]).strip()
        return said if self.none is None else f"{said}, or None: {self.none}"

    def values(self) -> str:
        """The default, or the number of each preset, in words."""
        if self.presets:
            return ", ".join(f"{value!r} ({name})" for name, value in self.presets.items())
        return "required" if self.default is NOT_SAID else repr(self.default)
