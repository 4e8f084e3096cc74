"""Put a mutant into functions that live, and into the loops that were compiled from them: for ``tests/mutants.py``.

Numba knows a loop that it kept on disk by the time of its file and by its instructions, not by its constants; and a loop that
calls another holds its machine code. A changed loop, and every loop that calls it, is therefore compiled from what it is now.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from numba.core import caching, dispatcher

from mutating import ROOT, Mutant


def loops_in_memory() -> list[Any]:
    """Every loop that is there; to be asked before ``gc.freeze()``."""
    return [each for each in gc.get_objects() if issubclass(type(each), dispatcher.Dispatcher)]


def place(mutant: Mutant, folder: Path, functions: Iterable[types.FunctionType], loops: Sequence[Any]) -> bool:
    """Put the change into these functions and loops: whether there was one that it is of."""
    path = str(folder / mutant.file.relative_to(ROOT))
    pending, codes = [compile(mutant.source, path, "exec", dont_inherit=True)], {}
    while pending:
        code = pending.pop()
        codes[code.co_qualname, code.co_firstlineno] = code
        pending += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    inside = (mutant.function, mutant.first)
    if inside not in codes:
        return False
    wanted = {at for at in codes if at == inside or at[0].startswith(f"{mutant.function}.<locals>.")}
    changed = {}
    for each in functions:
        at = (each.__code__.co_qualname, each.__code__.co_firstlineno)
        if each.__code__.co_filename == path and at in wanted:
            changed[each] = codes[at]
    if mutant.compiled:
        compile_anew(set(changed), loops)
    for each, code in changed.items():
        each.__code__ = code
    return any((code.co_qualname, code.co_firstlineno) == inside for code in changed.values())


def calls(function: types.FunctionType, changed: set[types.FunctionType]) -> bool:
    """Whether a loop is one of these, or calls a loop that does."""
    names = function.__code__.co_names
    given = [function.__globals__[name] for name in names if name in function.__globals__]
    for module in [each for each in given if isinstance(each, types.ModuleType)]:
        given += [vars(module)[name] for name in names if name in vars(module)]
    called = {each.py_func for each in given if isinstance(each, dispatcher.Dispatcher)} - {function}
    return function in changed or any(calls(each, changed) for each in called)


def compile_anew(changed: set[types.FunctionType], loops: Sequence[Any]) -> None:
    """Forget what these functions and what calls them were compiled to, in memory and on disk; now and for loops made later."""
    keep = dispatcher.Dispatcher.enable_caching

    def enable_caching(self: Any) -> None:
        if not calls(self.py_func, changed):
            keep(self)

    dispatcher.Dispatcher.enable_caching = enable_caching  # type: ignore[method-assign]
    for loop in loops:
        if calls(loop.py_func, changed):
            loop._cache = caching.NullCache()
            loop._make_finalizer()()
            loop._reset_overloads()
            loop._can_compile = True  # a loop of one signature is compiled for it when it is called


def without_kept_loops() -> None:
    """Loops that are made from now on are compiled, and nothing is kept."""
    dispatcher.Dispatcher.enable_caching = lambda self: None  # type: ignore[method-assign]
