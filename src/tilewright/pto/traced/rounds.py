"""Rounds: loops whose rounds end before their end, as loops whose rounds do not.

What follows a branch with a `continue` or a `break` stands on the side that goes on, and a loop with a `break` asks a
variable of its own whether there is another round.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import TypeVar

from tilewright.pto.traced.early_returns import MOST

L = TypeVar("L", ast.For, ast.While)
_GOES_ON = "goes.on"
"""What the names of variables begin with that say whether loops go on, as no name of Python does."""


def flag_of(node: ast.stmt) -> str:
    """Return the variable that says whether a loop goes on."""
    return f"{_GOES_ON}.{node.lineno}.{node.col_offset}"


def asked(node: ast.While) -> str:
    """Return the variable that a loop asks whether it goes on, nothing where it has none."""
    return node.test.id if isinstance(node.test, ast.Name) and node.test.id.startswith(_GOES_ON) else ""


def joined(node: L) -> L:
    """Return a loop without the `continue` and `break` of its own branches.

    One inside a scope stays, and is refused there.
    """
    if not any(_ends(node.body)):
        return node
    made = copy(node)
    made.body = _joined(node.body, MOST, flag_of(node))
    return made


def breaks(node: ast.For | ast.While) -> bool:
    """Return whether a loop has a `break` of its own."""
    return any(isinstance(each, ast.Break) for each in _ends(node.body))


def asking(node: ast.While) -> ast.While:
    """Return a loop with a `break` as one that asks whether it goes on, and its own condition inside."""
    made, body = copy(node), joined(node).body
    flag = flag_of(node)
    made.test = ast.copy_location(ast.Name(flag, ast.Load()), node.test)
    made.body = [ast.copy_location(ast.If(node.test, body, [_set(flag, ast.Constant(False), node)]), node)]
    return made


def counting(node: ast.For, names: tuple[str, str, str]) -> ast.While:
    """Return a counted loop with a `break` as one that counts by itself, in variables: its turn, the end, the step."""
    assert isinstance(node.target, ast.Name)
    turn, stop, step = (ast.copy_location(ast.Name(name, ast.Load()), node) for name in names)
    test = ast.copy_location(ast.Compare(turn, [ast.Lt()], [stop]), node)
    first = _set(node.target.id, turn, node)
    last = _set(names[0], ast.copy_location(ast.BinOp(turn, ast.Add(), step), node), node)
    body = [first, *joined(node).body, last]
    return asking(ast.copy_location(ast.While(test, body, []), node))


def _set(name: str, value: ast.expr, node: ast.stmt) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), node)
    return ast.copy_location(ast.Assign([target], ast.copy_location(value, node)), node)


def _ends(body: Iterable[ast.AST]) -> Iterator[ast.Continue | ast.Break]:
    """Yield each end of a round in a loop's body, but for those of loops in it."""
    for node in body:
        if isinstance(node, ast.Continue | ast.Break):
            yield node
        elif isinstance(node, ast.If):
            yield from _ends([*node.body, *node.orelse])


def _joined(body: Sequence[ast.stmt], doublings: int, flag: str) -> list[ast.stmt]:
    """Return statements up to an end of a round; what follows a branch with one stands on each side that goes on.

    Where that would double what follows too often, the end stays.
    """
    for at, node in enumerate(body):
        if isinstance(node, ast.Continue):
            return [*body[:at]] or [ast.copy_location(ast.Pass(), node)]
        if isinstance(node, ast.Break):
            return [*body[:at], _set(flag, ast.Constant(False), node)]
        if isinstance(node, ast.If) and any(_ends([node])):
            sides = [side for side in (node.body, node.orelse) if side]
            doublings -= not any(isinstance(side[-1], ast.Continue | ast.Break) for side in sides)
            if doublings < 0:
                break
            then, otherwise = (_joined([*side, *body[at + 1 :]], doublings, flag) for side in (node.body, node.orelse))
            return [*body[:at], ast.copy_location(ast.If(node.test, then, otherwise), node)]
    return [*body]
