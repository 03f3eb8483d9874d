"""Smaller texts: programs that are like one with a piece taken away, the largest pieces first."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

_BODIES = ("body", "orelse")


def smaller(text: str) -> Iterator[str]:
    """Yield a program's text without one of its statements, with the body of one in its place, or simpler calls.

    Whether what is left makes sense is for the front end to say.
    """
    tree = ast.parse(text)
    places = sorted(_places(tree), key=lambda place: -sum(1 for _ in ast.walk(_at(tree, place))))
    for place in places:
        if _has_others(tree, place):
            yield _changed(tree, place)
    for place in places:
        if any(getattr(_at(tree, place), name, None) for name in _BODIES):
            yield _unwrapped(tree, place)
    for place in places:
        yield from _renamed(tree, place)
        yield from _with_operands(tree, place)


def statement_count(text: str) -> int:
    """Return how many statements the functions of a program have."""
    return len(list(_places(ast.parse(text))))


_Place = tuple[tuple[str, int], ...]
"""Where a statement stands: in which body, at which position, of what stands there."""


def _places(node: Any, at: _Place = (), is_inside: bool = False) -> Iterator[_Place]:
    for name in _BODIES:
        found: list[ast.stmt] = getattr(node, name, None) or []
        for position, stmt in enumerate(found):
            place = (*at, (name, position))
            if is_inside:
                yield place
            yield from _places(stmt, place, is_inside or isinstance(stmt, ast.FunctionDef))


def _at(tree: Any, place: _Place) -> Any:
    for name, position in place:
        tree = getattr(tree, name)[position]
    return tree


def _changed(tree: ast.Module, place: _Place, *instead: ast.stmt) -> str:
    """Return the text with other statements at a place."""
    made = copy.deepcopy(tree)
    *around, (name, position) = place
    getattr(_at(made, tuple(around)), name)[position : position + 1] = instead
    return ast.unparse(ast.fix_missing_locations(made)) + "\n"


def _has_others(tree: ast.Module, place: _Place) -> bool:
    """Return whether there is more in a body than what stands at a place."""
    *around, (name, _) = place
    return len(getattr(_at(tree, tuple(around)), name)) > 1


def _unwrapped(tree: ast.Module, place: _Place) -> str:
    stmt = _at(tree, place)
    first = []
    if isinstance(stmt, ast.For) and isinstance(stmt.target, ast.Name):  # its first turn, mostly
        first = [ast.Assign([ast.Name(stmt.target.id, ast.Store())], ast.Constant(0))]
    return _changed(tree, place, *first, *stmt.body)


def _renamed(tree: ast.Module, place: _Place) -> Iterator[str]:
    """Yield the text without an assignment of one name to another, which stands for both."""
    match _at(tree, place):
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if _has_others(tree, place):
            made = ast.parse(_changed(tree, place))
            for node in ast.walk(made):
                if isinstance(node, ast.Name) and node.id == name:
                    node.id = other
            yield ast.unparse(made) + "\n"
        case _:
            return


def _with_operands(tree: ast.Module, place: _Place) -> Iterator[str]:
    """Yield the text with an operand of a call in place of the call."""
    stmt = _at(tree, place)
    value = getattr(stmt, "value", None)
    if isinstance(stmt, ast.Assign) and isinstance(value, ast.Call):
        for operand in (arg for arg in value.args if isinstance(arg, ast.Name)):
            yield _changed(tree, place, ast.Assign(stmt.targets, operand))
