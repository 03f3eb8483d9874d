"""Picks: sums of rows of which one element counts, by its number.

`pl.sum(pl.where(pl.arange(n) == wanted, x, 0.0), axis=-1)` says which element of each row is taken, as cross entropies
do. Nobody needs to look at the others for that.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Const, Expr, Var
from tilewright.core.types import TileType
from tilewright.dtypes import INT32
from tilewright.records import record

MOST = 1 << 30
"""Numbers that are counted without wrapping."""


@record
class Pick:
    """Elements, a column that says which one of each row is taken, and the number of the first of them."""

    elements: Var
    index: Var
    first: int


def pick_of(call: Call, made: Mapping[Var, Call]) -> Pick | None:
    """Return what a fold of rows picks, None for one in which more elements count."""
    chosen = _made(call.args[0], "tile.where", made) if call.op.name == "tile.row_sum" else None
    if chosen is None:
        return None
    given = arguments(chosen)
    elements, otherwise = given["x"], given["y"]
    equal = _made(given["condition"], "tile.eq", made)
    is_zero = isinstance(otherwise, Const) and otherwise.value == 0
    if equal is None or not isinstance(elements, Var) or not is_zero or not _are_alike(elements, chosen):
        return None
    for numbers, index in (equal.args, equal.args[::-1]):
        first = _counted(numbers, elements, made)
        if first is not None and _is_column(index, elements):
            assert isinstance(index, Var)
            return Pick(elements, index, first)
    return None


def _made(value: object, name: str, made: Mapping[Var, Call]) -> Call | None:
    """Return the call of an op that a value stands for."""
    call = made.get(value) if isinstance(value, Var) else None
    return call if call is not None and call.op.name == name else None


def _are_alike(elements: Var, chosen: Call) -> bool:
    one, other = elements.type, chosen.type
    if not isinstance(one, TileType) or not isinstance(other, TileType) or len(one.shape) != 2:
        return False
    is_whole = one.valid[-1] == other.valid[-1] == one.shape[-1]
    return one.shape == other.shape and one.dtype == other.dtype and is_whole


def _counted(numbers: Expr, elements: Var, made: Mapping[Var, Call]) -> int | None:
    """Return the first of the numbers that columns have, None where they are not counted one by one."""
    call = _made(numbers, "tile.iota", made)
    if call is None or not isinstance(numbers.type, TileType) or not isinstance(elements.type, TileType):
        return None
    given, shape = arguments(call), numbers.type.shape
    start, step = given["start"], given["step"]
    is_row = shape[-1] == elements.type.shape[-1] and all(extent == 1 for extent in shape[:-1])
    along = isinstance(given["axis"], int) and given["axis"] % len(shape) == len(shape) - 1
    if not isinstance(start, Const) or not isinstance(step, Const) or step.value != 1:
        return None
    first = int(start.value)
    is_plain = numbers.type.dtype == INT32 and shape[-1] > 1 and abs(first) < MOST
    return first if is_row and along and is_plain else None


def _is_column(index: Expr, elements: Var) -> bool:
    one, other = index.type, elements.type
    if not isinstance(index, Var) or not isinstance(one, TileType) or not isinstance(other, TileType):
        return False
    return one.shape == (other.shape[0], 1) and one.dtype == INT32 and one.valid[-1] == 1
