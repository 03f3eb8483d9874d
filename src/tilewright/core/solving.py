"""Solving: what a symbol is, told by an argument whose extent is a formula of it.

`pl.Tensor[[M * 2, N], ...]` tells M as well as N: an argument of 32 rows has M = 16. Formulas that one value alone
explains are undone step by step; of the others, such as `M // 2`, no argument tells the symbol. Whether an extent is
what its formula says is checked where arguments are: solving takes it for granted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from tilewright.core.build import scalar
from tilewright.core.expr import Call, Const, Expr, Symbol, integer
from tilewright.core.extents import symbols_in
from tilewright.core.types import Extent, TensorType, Type
from tilewright.records import record

GIVEN = Symbol("?")
"""Stands for the extent that an argument has."""


Located: TypeAlias = tuple[int, int, Extent]
"""An extent of a parameter, with the position of the parameter and the axis."""


@record
class Solution:
    """A symbol as a formula over the extent of one axis, `GIVEN`, and over symbols that are known before."""

    position: int
    axis: int
    value: Expr


def told(extents: Sequence[Located]) -> set[str]:
    """Return the symbols that arguments with some extents tell."""
    found = {extent.name for *_, extent in extents if isinstance(extent, Symbol)}
    return found | solved(extents, found).keys()


def located(types: Sequence[Type]) -> list[Located]:
    """Return the extents of parameters of some types, each with its parameter and axis."""
    shapes = [(position, type_.shape) for position, type_ in enumerate(types) if isinstance(type_, TensorType)]
    return [(position, axis, extent) for position, shape in shapes for axis, extent in enumerate(shape)]


def solved(extents: Iterable[Located], known: Collection[str]) -> Mapping[str, Solution]:
    """Return the symbols that only formulas tell, `known` ones being told otherwise."""
    formulas = [(at, axis, extent) for at, axis, extent in extents if isinstance(extent, Call)]
    found: dict[str, Solution] = {}
    names = set(known)
    while True:
        before = len(found)
        for position, axis, formula in formulas:
            told = _undone(formula, names)
            if told is not None:
                found[told[0]] = Solution(position, axis, told[1])
                names.add(told[0])
        if len(found) == before:
            return found


def _undone(formula: Expr, known: Collection[str]) -> tuple[str, Expr] | None:
    """Return the one symbol of a formula that is not known, as a formula over `GIVEN`; None where that is not all."""
    value: Expr = GIVEN
    while isinstance(formula, Call) and len(formula.args) == 2:
        lhs, rhs = formula.args
        is_left, is_right = (not symbols_in(side) <= set(known) for side in (lhs, rhs))
        if is_left == is_right:
            return None
        undone = _step(formula.op.spec.name, value, rhs if is_left else lhs, is_left)
        if undone is None:
            return None
        value, formula = undone, lhs if is_left else rhs
    return (formula.name, value) if isinstance(formula, Symbol) and formula.name not in known else None


def _step(operation: str, value: Expr, other: Expr, is_left: bool) -> Expr | None:
    """Return the operand that, with the other one, gives a value."""
    if operation == "add":
        return scalar("sub", value, other)
    if operation == "sub":
        return scalar("add", value, other) if is_left else scalar("sub", other, value)
    if operation != "mul" or (isinstance(other, Const) and other.value == 0):
        return None
    return scalar("floordiv", value, other if isinstance(other, Const) else scalar("max", other, integer(1)))
