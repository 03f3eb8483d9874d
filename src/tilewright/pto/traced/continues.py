"""Continues: rounds of loops that go on to the next one, as rounds whose rest stands on the other side of a branch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import TypeVar

from tilewright.pto.traced.early_returns import MOST

L = TypeVar("L", ast.For, ast.While)


def joined(node: L) -> L:
    """Return a loop without the `continue` of its own branches; one inside a scope stays, and is refused there."""
    if not any(_continues(node.body)):
        return node
    made = copy(node)
    made.body = _joined(node.body, MOST)
    return made


def _continues(body: Iterable[ast.AST]) -> Iterator[ast.Continue]:
    """Yield each `continue` of a loop's body, but for those of loops in it."""
    for node in body:
        if isinstance(node, ast.Continue):
            yield node
        elif isinstance(node, ast.If):
            yield from _continues([*node.body, *node.orelse])


def _joined(body: Sequence[ast.stmt], doublings: int) -> list[ast.stmt]:
    """Return statements up to a `continue`; what follows a branch with one stands on each side that goes on.

    Where that would double what follows too often, a `continue` stays.
    """
    for at, node in enumerate(body):
        if isinstance(node, ast.Continue):
            return [*body[:at]] or [ast.copy_location(ast.Pass(), node)]
        if isinstance(node, ast.If) and any(_continues([node])):
            doublings -= not any(isinstance(side[-1], ast.Continue) for side in (node.body, node.orelse) if side)
            if doublings < 0:
                break
            then, otherwise = (_joined([*side, *body[at + 1 :]], doublings) for side in (node.body, node.orelse))
            return [*body[:at], ast.copy_location(ast.If(node.test, then, otherwise), node)]
    return [*body]
