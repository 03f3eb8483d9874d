"""Made axes: axes of tiles that are as long as somebody said, whatever the tensors have that others are cut from.

The first operand that spans an axis says how much of a result is valid along it. `full - acc` so has all rows of a tile
where `acc` has those that are left at an edge, and the language refuses to store them. In other tiles it would be other
rows that are missing: such an axis stays as it was written unless all of its tiles are whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.stmt import ForStmt, YieldStmt
from tilewright.core.types import TileType
from tilewright.passes.products import BIASED, PRODUCTS, SUMS

MADE = ("full", "create", "iota")
"""Ops that give tiles of a shape that they are told."""

Axis = tuple[Var, int]
"""An axis of a tile, counted from the last: -1, -2."""


class MadeAxes:
    """Which axes of the tiles met so far are made."""

    def __init__(self) -> None:
        self._found: set[Axis] = set()

    def meet(self, var: Var, call: Call, tiles: Sequence[Var], is_mapped: bool) -> Sequence[Axis]:
        """Note what an op of some tiles gives; return the axes of it along which others are cut, but not the first."""
        if is_mapped:
            return [*self._mapped(var, tiles)]
        if call.op.spec.name in PRODUCTS + SUMS + BIASED:
            self._product(var, call)
        elif call.op.spec.name in MADE or any(self.is_made(axis) for tile in tiles for axis in _axes(tile)):
            self._found.update(_axes(var))
        return ()

    def is_made(self, axis: Axis) -> bool:
        """Return whether an axis of a tile is as long as somebody said."""
        return axis in self._found

    def _mapped(self, result: Var, operands: Sequence[Var]) -> Iterator[Axis]:
        """Note what is made element by element, which has as much as the first operand that spans an axis."""
        for axis in _axes(result):
            spanning = [(tile, axis[1]) for tile in operands if -axis[1] <= len(_shape(tile))]
            wide = [each for each in spanning if _shape(each[0])[axis[1]] != 1] or spanning
            if not wide or not self.is_made(wide[0]):
                continue
            self._found.add(axis)
            if not all(map(self.is_made, wide)):
                yield axis

    def _product(self, result: Var, call: Call) -> None:
        """Note a product: its rows are those of the left operand, its columns those of the right one."""
        given = arguments(call)
        lhs, rhs, acc = (given.get(name) for name in ("lhs", "rhs", "acc"))
        for number, operand in ((-2, lhs), (-1, rhs)):
            sources = [(tile, number) for tile in (operand, acc) if isinstance(tile, Var)]
            if all(map(self.is_made, sources)):
                self._found.add((result, number))

    def enter(self, loop: ForStmt) -> None:
        """Note what a loop carries, which begins as it is begun with."""
        for arg in loop.iter_args:
            self._hand_on(arg.init, arg.var)

    def leave(self, loop: ForStmt) -> None:
        """Note what a loop ends with."""
        last = loop.body.stmts[-1] if loop.body.stmts else None
        for value, result in zip(last.values, loop.return_vars, strict=False) if isinstance(last, YieldStmt) else ():
            self._hand_on(value, result)

    def _hand_on(self, value: Expr, var: Var) -> None:
        if isinstance(value, Var) and isinstance(var.type, TileType):
            self._found.update((var, number) for _, number in _axes(var) if self.is_made((value, number)))


def _shape(tile: Var) -> tuple[int, ...]:
    assert isinstance(tile.type, TileType)
    return tile.type.shape


def _axes(tile: Var) -> list[Axis]:
    return [(tile, -1 - number) for number in range(len(_shape(tile)))] if isinstance(tile.type, TileType) else []
