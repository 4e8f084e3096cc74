"""Every exception the package raises on purpose.

The tree::

    TisatError
    ├── InputError (ValueError)        a value, file or table that the caller can fix
    │   ├── ParameterError             a constructor or function argument
    │   ├── NotFoundError              a name or a number that does not exist here
    │   ├── ConflictError              something that is not possible now: somebody was first, or it is too late
    │   ├── SeriesError                a series: shape, timestamps, missing or infinite values, channels
    │   └── DataFileError              a file of a data set: names the file, the row and what was expected
    ├── ArtefactError (ValueError)     a saved model that is truncated, foreign, tampered with or too new
    ├── NotFittedError (ValueError, AttributeError)    a detector used before fit
    ├── TrainingError (RuntimeError)   training could not go on: the loss is not finite, or the network collapsed
    └── MissingExtraError (ImportError)    an optional dependency that is not installed; carries the pip command

The command line turns ``TisatError`` into one sentence and exit code 1. Nothing here knows about any other module.
"""

from __future__ import annotations

import re

__all__ = [
    "ArtefactError",
    "CalibrationWarning",
    "ConflictError",
    "DataFileError",
    "InputError",
    "MissingExtraError",
    "NotFittedError",
    "NotFoundError",
    "ParameterError",
    "SeriesError",
    "SeriesWarning",
    "TisatError",
    "TrainingError",
]


class TisatError(Exception):
    """The root: ``except TisatError`` catches everything the package raises on purpose."""


class InputError(TisatError, ValueError):
    """Something the caller handed in and can fix."""


class ParameterError(InputError):
    """An argument outside its domain.

    ``parameter`` is its name, where one is to blame, and ``predicate`` the sentence without its subject ("must be ... Got ... instead."):
    a command line puts its option there.
    """

    def __init__(self, message: str, *, parameter: str | None = None, predicate: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.predicate = predicate

    @classmethod
    def about(cls, parameter: str, predicate: str, *, whose: str = "", subject: str = "") -> ParameterError:
        """Make the error of one parameter, of ``whose`` or under another ``subject``.

        Examples
        --------
        >>> ParameterError.about("k", "must be at least 1. Got 0 instead.", whose="KNNEvidence")
        ParameterError("The 'k' parameter of KNNEvidence must be at least 1. Got 0 instead.")
        """
        subject = subject or f"The {parameter!r} parameter of {whose}"
        return cls(f"{subject} {predicate}", parameter=parameter, predicate=predicate)


class NotFoundError(InputError):
    """Something was asked for by a name or a number that does not exist here."""


class ConflictError(InputError):
    """Something is not possible in the present state: somebody else was first, or it is too late."""


class SeriesError(InputError):
    """A series that breaks the contract of :class:`tisat.Series`, or that does not fit the detector."""


class DataFileError(InputError):
    """A data file that is not what its publisher describes."""


class ArtefactError(TisatError, ValueError):
    """A saved model that cannot be trusted or read."""


class NotFittedError(TisatError, ValueError, AttributeError):
    """A detector was asked for scores before ``fit``."""


class TrainingError(TisatError, RuntimeError):
    """Training stopped because going on would only waste time."""


class MissingExtraError(TisatError, ImportError):
    """An optional dependency is missing; the message is the command that installs it."""


class SeriesWarning(UserWarning):
    """Rows were judged with less than the model knows.

    The message says what they lack.
    """


class CalibrationWarning(UserWarning):
    """A threshold was computed, but an assumption behind it does not hold.

    The message says which. Its text names parameters of Python; ``args[0]`` the options of the command line.

    Examples
    --------
    >>> print(CalibrationWarning("--budget '1/2 days' is supported."))
    budget="1/2 days" is supported.
    """

    def __str__(self) -> str:
        return re.sub(
            r"--([a-z-]+) (?:'([^']*)'|(\S+))",
            lambda found: f'{found[1].replace("-", "_")}="{found[2] or found[3]}"',
            super().__str__(),
        )
