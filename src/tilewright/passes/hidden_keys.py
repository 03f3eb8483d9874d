"""Hidden keys: what a causal mask lets no row see, `pl.where(keys <= rows, scores, float("-inf"))`.

Rows are numbered, and so are the keys that a loop folds: a row sees none whose number is larger than its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Const, Expr, Var
from tilewright.core.stmt import AssignStmt, ForStmt
from tilewright.core.types import TileType
from tilewright.passes.tile_axes import is_number
from tilewright.records import record

_BEFORE, _AFTER = ("le", "lt"), ("ge", "gt")
"""Comparisons that hold only where the first number is no larger, or the second."""


@record
class HiddenKeys:
    """The scores of a fold as rows see them, and those that some of them do not see as well."""

    seen: Var
    scores: Var

    @staticmethod
    def of(fold: ForStmt, made: Mapping[Var, Call], row: Var) -> HiddenKeys | None:
        """Return what a fold of rows that begin at a number hides of keys that come after each of them."""
        for stmt in fold.body:
            call = stmt.value if isinstance(stmt, AssignStmt) else None
            if not isinstance(stmt, AssignStmt) or not isinstance(call, Call) or call.op.name != "tile.where":
                continue
            condition, scores, other = (arguments(call)[name] for name in ("condition", "x", "y"))
            mask = made.get(condition) if isinstance(condition, Var) else None
            if mask is None or not isinstance(scores, Var) or not isinstance(other, Const) or other.value != -inf:
                continue
            if _pair(mask, made) == (fold.loop_var, row):
                return HiddenKeys(stmt.var, scores)
        return None


def _pair(mask: Call, made: Mapping[Var, Call]) -> tuple[Expr | None, Expr | None] | None:
    """Return where the numbers of columns begin that a mask admits up to those of rows, and where these do."""
    name = mask.op.spec.name
    if mask.op.name not in {f"tile.{each}" for each in (*_BEFORE, *_AFTER)}:
        return None
    first, second = mask.args if name in _BEFORE else mask.args[::-1]
    return _begin(first, made, -1), _begin(second, made, -2)


def _begin(numbers: Expr, made: Mapping[Var, Call], axis: int) -> Expr | None:
    """Return where a tile of numbers begins that count along an axis alone, one by one."""
    call = made.get(numbers) if isinstance(numbers, Var) else None
    if call is None:
        return None
    if call.op.name == "tile.iota":
        given, shape = arguments(call), _shape(call)
        own = given["axis"] % len(shape) - len(shape) if isinstance(given["axis"], int) else 0
        is_plain = own == axis and is_number(given["step"], 1)
        return given["start"] if is_plain and isinstance(given["start"], Expr) else None
    places = [arg for arg in call.args if isinstance(arg, Var) and not isinstance(arg.type, TileType)]
    tiles = [arg for arg in call.args if isinstance(arg, Var) and isinstance(arg.type, TileType)]
    is_placed = call.op.name in ("tile.add", "tile.adds") and len(places) == len(tiles) == 1
    return places[0] if is_placed and is_number(_begin(tiles[0], made, axis), 0) else None


def _shape(call: Call) -> tuple[int, ...]:
    return call.type.shape if isinstance(call.type, TileType) else ()
