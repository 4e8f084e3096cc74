"""The one way a loop is compiled: by numba, without the interpreter's lock, and kept on disk where that can be.

Numba keeps what it compiles beside the source, or else in the user's cache folder. Where neither may be written (a read-only
image, a service without a home) it raises; the loop is then compiled anew in each process.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*, reorder: bool = False) -> Callable[[F], F]:
    """A decorator that compiles a function at its first call, once for each set of argument types.

    Parameters
    ----------
    reorder : bool
        Whether sums may be taken in another order, which is faster and rounds otherwise. The order is then the compiler's:
        the same for every call, not the same on every processor.

    Examples
    --------
    >>> @compiled()
    ... def total(values):
    ...     found = 0.0
    ...     for value in values:
    ...         found += value
    ...     return found
    """
    relaxed: Set[str] | bool = {"reassoc", "contract"} if reorder else False

    def make(function: F) -> F:
        return compile_for(None, function, fastmath=relaxed)

    return make


def compile_for(signature: object, function: F, **options: object) -> F:
    """``function`` compiled now for ``signature``, or at its first call where that is None."""
    signatures = () if signature is None else (signature,)
    try:
        kernel: F = numba.njit(*signatures, cache=True, nogil=True, **options)(function)
    except RuntimeError:  # numba: "cannot cache function": no directory may be written
        kernel = numba.njit(*signatures, nogil=True, **options)(function)
    return kernel
