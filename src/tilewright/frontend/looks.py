"""Looks: statements of Python's that only look at a kernel's values, in one that is stepped through.

There is one rule: what the language refuses runs as Python, unless it is a line of the kernel's. A line of the kernel's
writes, calls another kernel, leaves a loop or the function, or binds a name that the kernel has.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator
from typing import Any

from tilewright.core.op import Effect, spec_of
from tilewright.frontend.kernel_builder import KernelBuilder
from tilewright.frontend.value_keys import MISSING

_STATEMENTS = (
    ast.AnnAssign,
    ast.Assert,
    ast.Assign,
    ast.AugAssign,
    ast.Delete,
    ast.Expr,
    ast.For,
    ast.If,
    ast.Import,
    ast.ImportFrom,
    ast.Pass,
    ast.Raise,
    ast.Try,
    ast.While,
    ast.With,
)
_LEAVES = (ast.Break, ast.Continue)


def looks(t: KernelBuilder, node: ast.stmt, looked: Collection[str]) -> bool:
    """Return whether a refused statement is of somebody who looks at values, who has bound the names in `looked`."""
    parts = [*ast.walk(node)]
    stmts = [part for part in parts if isinstance(part, ast.stmt)]
    if not all(isinstance(each, _STATEMENTS) or (isinstance(each, _LEAVES) and each is not node) for each in stmts):
        return False
    if any(isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await)) for part in parts) or _leaves(node):
        return False
    bound = bound_names(node)
    if any(name not in looked and (t.find(name) is not None or _outside(t, name) is not MISSING) for name in bound):
        return False
    if any(not isinstance(part, ast.Name) and t.find(_root(part)) is not None for part in _targets(parts)):
        return False
    own = {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    known = {*own, *bound, *looked, *(part.arg for part in parts if isinstance(part, ast.arg))}
    read = {part.id for part in parts if isinstance(part, ast.Name)} - known
    if not all(_is_bound(t, name) or _outside(t, name) is not MISSING for name in read):
        return False
    return not any(_is_kernels(t, part) for part in parts if isinstance(part, ast.Call))


def bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds or deletes in its function: not those of comprehensions."""
    inner = {
        id(name) for part in ast.walk(node) if isinstance(part, ast.comprehension) for name in ast.walk(part.target)
    }
    found = {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load) and id(part) not in inner
    }
    imported = [part for part in ast.walk(node) if isinstance(part, (ast.Import, ast.ImportFrom))]
    found |= {alias.asname or alias.name.partition(".")[0] for part in imported for alias in part.names}
    caught = [part.name for part in ast.walk(node) if isinstance(part, ast.ExceptHandler)]
    return found | {name for name in caught if name is not None}


def _leaves(node: ast.AST, *, in_loop: bool = False) -> bool:
    """Return whether a `break` or `continue` in a statement is one of a loop around it."""
    if isinstance(node, _LEAVES):
        return not in_loop
    inside = in_loop or isinstance(node, (ast.For, ast.While))
    return any(_leaves(part, in_loop=inside) for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr))


def _targets(parts: list[ast.AST]) -> Iterator[ast.expr]:
    """Yield the items and attributes that are assigned to or deleted."""
    for part in parts:
        if isinstance(part, (ast.Subscript, ast.Attribute)) and not isinstance(part.ctx, ast.Load):
            yield part


def _root(node: ast.expr) -> str:
    """Return the name that items and attributes are taken from, nothing where it is no name."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_kernels(t: KernelBuilder, node: ast.Call) -> bool:
    """Return whether a call does something in the kernel: it writes, is a directive or a kernel, or changes a list."""
    root = t.find(_root(node.func))
    if root is not None:
        return isinstance(node.func, ast.Attribute) and isinstance(root.value, (tuple, list, dict))
    called = _value(t, node.func)
    if (spec := spec_of(called)) is not None:
        return spec.effect is Effect.WRITE or spec.writes is not None
    of = getattr(called, "__module__", None) or type(called).__module__
    return str(of).partition(".")[0] == __name__.partition(".")[0]


def _value(t: KernelBuilder, node: ast.expr) -> Any:
    """Return what a name from outside, or an attribute of one, stands for; it is not noted as read."""
    if isinstance(node, ast.Attribute):
        return getattr(_value(t, node.value), node.attr, MISSING)
    return _outside(t, node.id) if isinstance(node, ast.Name) else MISSING


def _is_bound(t: KernelBuilder, name: str) -> bool:
    found = t.find(name)
    return found is not None and not found.problem


def _outside(t: KernelBuilder, name: str) -> Any:
    """Return what a name stands for outside of the kernel, `MISSING` for nothing."""
    python = t.resolver.function
    if (cell := t.resolver.cells.get(name)) is not None:
        try:
            return cell.cell_contents
        except ValueError:  # not bound yet
            return MISSING
    return python.__globals__.get(name, getattr(builtins, name, MISSING))
