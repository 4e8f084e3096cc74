"""Small changes to source code, one at a time, and the child in which one lives: for ``tests/mutants.py``."""

from __future__ import annotations

import ast
import collections
import hashlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COMPARED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
LEAVE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)  # what is said, not what is done
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, and what it makes of the line."""

    file: Path
    source: str  # of the file with the change in it; its lines are numbered as before
    lines: tuple[int, int]  # the statement's, both in it
    line: int
    was: str
    now: str
    function: str  # the outermost that holds the change; empty in a module's or a class's own lines
    first: int  # its first line
    compiled: bool
    key: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT / 'packages' / 'tisat' / 'src' / 'tisat')}:{self.line}  {self.was}  ->  {self.now}"


def change(node: ast.AST) -> ast.AST | None:
    """What a node becomes; None where it is none of those that are changed."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARED:
            return ast.Compare(node.left, [COMPARED[type(op)]()], node.comparators)
        case ast.BinOp() if type(node.op) in COMPUTED:
            return ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in COMPUTED:
            return ast.AugAssign(node.target, COMPUTED[type(node.op)](), node.value)
        case ast.BoolOp():
            return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            return node.operand
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            return ast.Return(ast.Constant(None))
        case ast.Constant(value=bool() as value):
            return ast.Constant(not value)
        case ast.Constant(value=int() | float() as value) if value + 1 != value:
            return ast.Constant(value + 1)
    return None


def _only_for_readers(node: ast.AST) -> bool:
    """Docstrings, ``__all__``, imports for the type checker, warnings."""
    text = ast.unparse(node) if isinstance(node, (ast.If, ast.Assign, ast.Expr)) else ""
    return text.startswith(("if TYPE_CHECKING", "__all__", "warnings.warn", "'", '"'))


def places(
    tree: ast.AST, outer: Any = None, name: str = "", statement: Any = None
) -> Iterator[tuple[Any, Any, str, Any]]:
    """Nodes that may be changed, with the outermost function that holds them, its name, and their statement."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            guards = isinstance(child, ast.keyword) and child.arg == "strict"  # like an assertion
            if not isinstance(child, ast.AST) or isinstance(child, LEAVE) or guards or _only_for_readers(child):
                continue
            here, named = outer, name
            if outer is None and isinstance(tree, FUNCTIONS) and field == "body":
                here = tree
            elif outer is None and isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                named = f"{name}.{child.name}".lstrip(".")
            stands_in = child if isinstance(child, ast.stmt) else statement
            yield child, here, named, stands_in
            yield from places(child, here, named, stands_in)


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    text = file.read_bytes()
    begins = [0]
    for each in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(each))
    seen = collections.Counter[tuple[str, str, str]]()
    wholes: dict[int, str] = {}  # of a function, by its node
    for node, outer, name, statement in places(ast.parse(text)):
        new = change(node)
        if new is None:
            continue
        start, stop = begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset
        was, now = ast.unparse(node), ast.unparse(ast.fix_missing_locations(new))
        wide = "\n" * (node.end_lineno - node.lineno)  # what follows keeps its line
        placed = f"({now}{wide})" if isinstance(node, ast.expr) else now + wide
        seen[name, was, now] += 1
        if id(outer or statement) not in wholes:
            wholes[id(outer or statement)] = ast.unparse(outer or statement)
        told = [str(file.relative_to(ROOT)), name, wholes[id(outer or statement)], was, now, seen[name, was, now]]
        last = statement.body[0].lineno - 1 if hasattr(statement, "body") else statement.end_lineno
        decorators = [] if outer is None else outer.decorator_list
        yield Mutant(
            file, (text[:start] + placed.encode() + text[stop:]).decode(), (statement.lineno, max(last, statement.lineno)),
            node.lineno, was, now, name if outer else "", min([each.lineno for each in decorators], default=getattr(outer, "lineno", 0)),
            file.name == "_kernels.py" or any("compiled" in ast.unparse(each) for each in decorators),
            hashlib.sha256(json.dumps(told).encode()).hexdigest()[:20],
        )  # fmt: skip


def sample_of(found: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """A random sample that an edit elsewhere does not change, and that a larger one holds."""
    return sorted(found, key=lambda each: hashlib.sha256(f"{seed} {each.key}".encode()).digest())[:size]


def in_a_child(work: Callable[[], int], *, log: Path, wall: float = 7200.0) -> int:
    """What ``work()`` returned in a process of its own; minus the signal that ended it."""
    child = os.fork()
    if child:
        until = time.monotonic() + wall
        while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > until:  # it waits for something that never comes
                os.kill(child, signal.SIGKILL)
            time.sleep(0.02)
        return os.waitstatus_to_exitcode(found[1])
    code = 70
    try:
        silent = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = int(work())
    except BaseException:  # the child must end here, whatever a mutant does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
