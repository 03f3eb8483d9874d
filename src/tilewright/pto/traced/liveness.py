"""Liveness: which variables of a traced function are read again.

A loop or a branch hands on only what somebody still reads. That is decided from the text: the names that the rest of
the function, or the next round of a loop around it, mentions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache


@lru_cache(maxsize=4096)
def reads(node: ast.AST) -> frozenset[str]:
    """Return the variables that a piece of text mentions other than by assigning them."""
    return frozenset(name for n in ast.walk(node) for name in _read(n))


def _read(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
        yield node.id
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def read_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the variables that any of some pieces of text mentions."""
    return frozenset(name for node in nodes for name in reads(node))


@lru_cache(maxsize=256)
def closed_over(function: ast.FunctionDef) -> frozenset[str]:
    """Return the variables that functions defined inside another one mention, which calls of them read unseen."""
    inner = [node for node in ast.walk(function) if isinstance(node, ast.FunctionDef) and node is not function]
    return read_in(inner)


def read_after(body: Sequence[ast.stmt], after: Iterable[str]) -> dict[int, frozenset[str]]:
    """Return the variables that are read after each statement of a body that has a block; after them all, `after`."""
    found: dict[int, frozenset[str]] = {}
    if any(isinstance(statement, _BLOCKS) for statement in body):
        seen = set(after)
        for position in reversed(range(len(body))):
            if isinstance(body[position], _BLOCKS):
                found[position] = frozenset(seen)
            seen |= reads(body[position])
    return found


_BLOCKS = (ast.If, ast.For, ast.While, ast.With)
"""The statements that hand values on, and so ask what is read after them."""


def assigned_in(body: Iterable[ast.stmt]) -> list[str]:
    """Return the variables that statements assign, in the order of the text, once each."""
    return list(dict.fromkeys(name for statement in body for name in _stores(statement)))


def _stores(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if not isinstance(node, ast.FunctionDef):
        for child in ast.iter_child_nodes(node):
            yield from _stores(child)
