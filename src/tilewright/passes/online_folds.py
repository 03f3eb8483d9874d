"""Online folds: loops that see rows piece by piece, and keep a maximum and sums that are scaled to it.

Attention has such loops. They carry the largest of all elements so far, and sums of `exp(element - largest)`, or of
products with those. When the largest changes, the sums are multiplied by `exp(before - largest)`. They come out the
same in whatever pieces a row is cut, but for rounding, if nothing else is made of what is carried, and of what is
folded along a piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Const, Expr, Var
from tilewright.core.stmt import AssignStmt, ForStmt, YieldStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import variables
from tilewright.passes.tile_axes import TileAxes
from tilewright.records import record


class Part(Enum):
    """What a tile is to an online fold."""

    FREE = auto()
    """Nothing to do with what is carried, nor folded."""
    HELD = auto()
    """Carried into a turn."""
    PEAK = auto()
    """The maximum of a piece."""
    LARGEST = auto()
    """The maximum so far."""
    SHIFTED, WEIGHTS = auto(), auto()
    """Elements less the maximum, and their exponentials."""
    FALLEN, KEPT = auto(), auto()
    """The maximum before less the maximum, and its exponential."""
    SCALED = auto()
    """A sum that is scaled to the maximum."""
    GAIN = auto()
    """What a piece adds to a sum."""
    SUM = auto()


@record
class Piece:
    """A tile of an online fold: what it is, of which carried tile, and which carried maximum it is scaled to."""

    part: Part
    of: Var | None = None
    by: Var | None = None


FREE = Piece(Part.FREE)


Rule = Callable[[Sequence[Piece]], Piece | None]


def _scaled_to(part: Part) -> Rule:
    """Return a rule for what is scaled as one of its operands is."""
    return lambda given: Piece(part, by=next((piece.by for piece in given if piece.by is not None), None))


def _largest(given: Sequence[Piece]) -> Piece:
    held = _only(given, Part.HELD)
    return Piece(Part.LARGEST, held.of, held.of)


def _fallen(given: Sequence[Piece]) -> Piece | None:
    held, largest = given
    return Piece(Part.FALLEN, by=largest.by) if held.of is largest.by else None


def _scaled(given: Sequence[Piece]) -> Piece:
    return Piece(Part.SCALED, _only(given, Part.HELD).of, _only(given, Part.KEPT).by)


def _summed(given: Sequence[Piece]) -> Piece | None:
    (sums,) = (piece for piece in given if piece.of is not None)
    is_scaled_alike = all(piece.by is sums.by for piece in given if piece.part is not Part.FREE)
    return Piece(Part.SUM, sums.of, sums.by) if is_scaled_alike else None


def _only(given: Sequence[Piece], part: Part) -> Piece:
    (found,) = (piece for piece in given if piece.part is part)
    return found


P = Part
RULES: Mapping[str, Mapping[tuple[Part, ...], Rule]] = {
    "maximum": {(P.HELD, P.PEAK): _largest, (P.PEAK, P.HELD): _largest},
    "sub": {(P.FREE, P.LARGEST): _scaled_to(P.SHIFTED), (P.HELD, P.LARGEST): _fallen},
    "expdif": {(P.FREE, P.LARGEST): _scaled_to(P.WEIGHTS)},
    "exp": {(P.SHIFTED,): _scaled_to(P.WEIGHTS), (P.FALLEN,): _scaled_to(P.KEPT)},
    "cast": {(P.WEIGHTS,): _scaled_to(P.WEIGHTS)},
    "mul": {
        (P.HELD, P.KEPT): _scaled,
        (P.KEPT, P.HELD): _scaled,
        (P.WEIGHTS, P.FREE): _scaled_to(P.WEIGHTS),
        (P.FREE, P.WEIGHTS): _scaled_to(P.WEIGHTS),
    },
    "row_max": {(P.FREE,): _scaled_to(P.PEAK)},
    "row_sum": {(P.WEIGHTS,): _scaled_to(P.GAIN), (P.FREE,): _scaled_to(P.GAIN)},
    "matmul": {(P.WEIGHTS, P.FREE): _scaled_to(P.GAIN), (P.FREE, P.FREE): _scaled_to(P.GAIN)},
    "matmul_acc": {(P.SCALED, P.WEIGHTS, P.FREE): _summed, (P.HELD, P.FREE, P.FREE): _summed},
    "add": {pair: _summed for sums in (P.SCALED, P.HELD) for pair in ((sums, P.GAIN), (P.GAIN, sums))},
}
"""What an op makes of parts; what it makes of others is nothing that is known of."""
FOLDING = {"row_sum": 0, "row_max": 0, "matmul": 0, "matmul_acc": 1}
"""Which operand's last axis an op folds."""


class OnlineFold:
    """A loop as an online fold, if it is one."""

    def __init__(self, loop: ForStmt, axes: TileAxes) -> None:
        self.loop, self.axes = loop, axes
        self.keys = axes.cut_by(loop.loop_var)
        """The axes that pieces are cut along."""
        self._pieces: dict[Var, Piece] = {arg.var: Piece(P.HELD, arg.var) for arg in loop.iter_args}
        self.is_one = bool(self.keys) and self._is_understood()

    def _is_understood(self) -> bool:
        *stmts, last = self.loop.body.stmts or (None,)
        if not isinstance(last, YieldStmt) or not all(isinstance(stmt, AssignStmt) for stmt in stmts):
            return False
        for stmt in stmts:
            assert isinstance(stmt, AssignStmt)
            piece = self._piece(stmt.value)
            if piece is None:
                return False
            self._pieces[stmt.var] = piece
        ends = list(zip(self.loop.iter_args, last.values, strict=True))
        keeps_largest = any(piece.part is P.LARGEST for piece in self._pieces.values())
        return keeps_largest and all(self._goes_on(arg.var, end) and self._begins(arg.init, end) for arg, end in ends)

    def _piece(self, value: Expr) -> Piece | None:
        """Return what an expression is to the fold, None where nothing is known of such."""
        found = [self._pieces.get(var, FREE) for var in variables([value])]
        is_free = all(piece.part is P.FREE for piece in found)
        if not isinstance(value, Call):
            return FREE if is_free else None
        name, tiles = value.op.spec.name, [x for x in value.args if isinstance(x.type, TileType)]
        folds = name in FOLDING and self._is_key(tiles[FOLDING[name]])
        if is_free and not folds:
            return FREE
        if not folds and name in FOLDING:
            return None
        parts = [self._pieces.get(x, FREE) if isinstance(x, Var) else FREE for x in _operands(value)]
        rule = RULES.get(name.removeprefix("row_expand_"), {}).get(tuple(piece.part for piece in parts))
        return rule(parts) if rule is not None else None

    def _is_key(self, tile: Expr) -> bool:
        return isinstance(tile, Var) and any(self.axes.of(tile, -1) is each for each in self.keys)

    def _goes_on(self, held: Var, value: Expr) -> bool:
        piece = self._pieces.get(value, FREE) if isinstance(value, Var) else FREE
        return piece.part in (P.LARGEST, P.SUM) and piece.of is held

    def _begins(self, init: Expr, value: Expr) -> bool:
        """Return whether a maximum begins with a number: less than all is less than nothing, which is no number."""
        piece = self._pieces[value] if isinstance(value, Var) else FREE
        made = self.axes.made.get(init) if isinstance(init, Var) else None
        if piece.part is not P.LARGEST or self._goes_on_from_another(init):
            return True
        first = arguments(made).get("value") if made is not None and made.op.spec.name == "full" else None
        return isinstance(first, Const) and math.isfinite(first.value)

    def _goes_on_from_another(self, init: Expr) -> bool:
        """Return whether a maximum begins with that of another such loop."""
        before = [loop for loop in self.axes.loops.values() if init in loop.return_vars]
        return any(OnlineFold(loop, self.axes).keeps_largest(loop.return_vars.index(init)) for loop in before)

    def keeps_largest(self, position: int) -> bool:
        """Return whether it is a fold, and what it carries at a position is a maximum."""
        last = self.loop.body.stmts[-1]
        value = last.values[position] if isinstance(last, YieldStmt) else None
        return self.is_one and isinstance(value, Var) and self._pieces[value].part is P.LARGEST


def _operands(call: Call) -> Sequence[Expr]:
    """Return the operands of an op that is done element by element, or of a product in the order sum, left, right."""
    given = arguments(call)
    names = [name for name in ("acc", "lhs", "rhs") if name in given]
    if call.op.spec.name in FOLDING and names:
        return [value for name in names if isinstance(value := given[name], Expr)]
    return call.args
