"""Writing: an op as the lines that say it, of whole tiles, of one matrix after the other or of one element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.core.op import SCRATCH
from tilewright.core.types import TileType, is_fully_valid
from tilewright.programs.pto_text.matrices import BY_MATRIX, by_matrix, least_along
from tilewright.programs.pto_text.unsaid import unsaid
from tilewright.programs.pto_text.values import NoPtoError, Tensor, Tile, Value
from tilewright.programs.pto_text.words import (
    ALONE,
    KNOWS_PARTS,
    ONE_BY_ONE,
    OPS,
    Given,
    in_vec,
    is_ragged,
    meets_more,
    refuse,
    rows_for,
    sizes_of,
)
from tilewright.programs.pto_text.writer import NotTakenError, Writer

POINTWISE = ("elementwise", "mapped")
"""The families of ops that compute each element by itself."""
RAGGED = {
    f"tile.{name}"
    for name in (
        "load", "store", "slice", "read", "write", "cast", "transpose", "transpose_view", "flip", "strided",
        "fillpad", "fillpad_expand", "fillpad_inplace", "expands", "concat", "set_validshape", "reinterpret_view",
        "rand", "randint", "take", "put", *(f"atomic_{name}" for name in "add max min and or xor xchg cas".split()),
        "gather", "pick", "scatter", *(f"part_{name}" for name in ("add", "mul", "max", "min")),
        "sort", "argsort", "cumsum", "cumprod", "cummax", "cummin", "cmp", "sel", "sels", "assemble",
    )
}  # fmt: skip
"""The ops that know tiles that are ragged along many axes beside those, and beside what goes row by row."""


def written(w: Writer, call: Call, value: Callable[[Any], Any]) -> Value | tuple[Value, ...] | None:
    """Write an op, whose operands `value` gives; return what it gives."""
    name = call.op.name
    given = {key: value(each) for key, each in arguments(call).items()}
    if name not in OPS and name not in ALONE:
        reason = unsaid(call.op)
        why = f": {reason.why}" if reason else ""
        raise NoPtoError(f"this export has no words for `pl.{name}`{why}", help=reason.help if reason else "")
    is_part = any(isinstance(each, Tensor) and each.part for each in given.values())
    refuse(call, is_part and name not in KNOWS_PARTS, "of a tensor that is valid in part", "load it, and use the tile")
    if _goes_by_matrix(call):
        return by_matrix(_said, w, call, given)
    _refuse_ragged(call, [each for each in given.values() if isinstance(each, Tile)])
    given = {key: _repeated(w, call, each, given[key]) for key, each in arguments(call).items()}
    made = _said(w, call, given)
    return _ragged(w, call, made, given) if isinstance(made, Tile) and not made.axes else made


def _said(w: Writer, call: Call, given: Given) -> Any:
    """Write an op for all elements at once, or for each by itself where no machine takes them."""
    function, alone = OPS.get(call.op.name), ALONE.get(call.op.name)
    if function is None or alone is None:
        return (function or alone)(w, call, given)  # pyright: ignore[reportOptionalCall]
    try:
        with w.choosy():
            return function(w, call, given)
    except NotTakenError:
        return alone(w, call, given)


# tiles that are valid in part along more than rows and columns


def _goes_by_matrix(call: Call) -> bool:
    """Return whether tiles meet so that rows and columns of one matrix alone say how."""
    spec, type_ = call.op.spec, call.type
    if not isinstance(type_, TileType) or spec.family not in (*POINTWISE, "expansion"):
        return False
    types = _operands(call)
    if all(map(is_fully_valid, (type_, *types))):
        return False
    if spec.family == "expansion" and spec.name.startswith("col_"):
        return any(is_ragged(each.shape, sizes_of(each)) for each in (type_, *types))
    return any(meets_more(own.shape, type_.shape) for own in types)


def _operands(call: Call) -> list[TileType]:
    named = [(name, each) for name, each in arguments(call).items() if isinstance(each, Expr)]
    return [each.type for name, each in named if name not in SCRATCH and isinstance(each.type, TileType)]


def _refuse_ragged(call: Call, tiles: Sequence[Tile]) -> None:
    """Raise for an op that would take for valid what lies between the valid rows of a tile."""
    is_made = isinstance(call.type, TileType) and is_ragged(call.type.shape, sizes_of(call.type))
    if (is_made or any(tile.axes for tile in tiles)) and not _knows_ragged(call):
        message = f"PTO's tiles have two axes, and `pl.{call.op.name}` is given one of which a part is valid along more"
        raise NoPtoError(message, help=ONE_BY_ONE)


def _knows_ragged(call: Call) -> bool:
    spec, name = call.op.spec, call.op.name
    is_by_row = spec.family in ("reduction", "expansion") and spec.name.startswith("row_")
    return name in RAGGED or spec.family in POINTWISE or is_by_row or OPS.get(name) in BY_MATRIX


def _ragged(w: Writer, call: Call, made: Tile, given: Given) -> Tile:
    """Return what an op makes with how much of it is valid along each axis: as much as of all that it is made of."""
    type_ = call.type
    if not isinstance(type_, TileType) or not is_ragged(type_.shape, sizes_of(type_)):
        return made
    return made.along(least_along(w, call, given, -1))


def _repeated(w: Writer, call: Call, operand: object, value: Any) -> Any:
    """Return an operand as often as it meets others along the axes before the last, where rows alone do not say it."""
    own, type_ = operand.type if isinstance(operand, Expr) else None, call.type
    if not (isinstance(value, Tile) and isinstance(own, TileType) and isinstance(type_, TileType)) or (
        call.op.spec.family not in (*POINTWISE, "expansion")
    ):
        return value
    if not meets_more(own.shape, type_.shape):
        return value
    return rows_for(w, in_vec(w, value), own.shape, type_.shape)
