"""Constant rules: numbers whose text already shows that they contradict a type.

What only the running program knows is held to the same when it runs. A rule raises without a place: the verifier knows
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from tilewright.errors import PtoOperandError, PtoValidShapeError
from tilewright.pto.module import Op, Value
from tilewright.pto.types import Dims, TensorView, TileBuf

Constants: TypeAlias = Mapping[Value, int]
"""What values are that a constant defines."""
Rule: TypeAlias = Callable[[Op, Constants], None]

BLOCK_LENGTH = 64
"""A merge takes blocks of a whole multiple of these."""


def _refuse_extents(op: Op, what: str, given: Iterable[Value], dims: Dims, constants: Constants) -> None:
    """Raise where an extent is not what the type of the result says it is."""
    for axis, (value, extent) in enumerate(zip(given, dims, strict=False)):
        number = constants.get(value)
        if number is None:
            continue
        if number < 0:
            raise PtoOperandError(f"{what} {axis} of `{op.name}` is {number}", help="extents are not negative")
        if extent is not None and number != extent:
            message = f"{what} {axis} of `{op.name}` is {number}, and its result has {extent}"
            raise PtoOperandError(message, help=f"write {number} in the type, or `?`")


def _view(op: Op, constants: Constants) -> None:
    type = op.results[0].type
    assert isinstance(type, TensorView)
    shape = op.clause("shape") or ()
    _refuse_extents(op, "extent", shape, _dims(type, len(shape)), constants)


def _dims(type: TensorView, rank: int) -> Dims:
    """Return the extents of a view; old text has their number instead, and nothing to contradict."""
    return type.shape if len(type.shape) == rank else (None,) * rank


def _partition(op: Op, constants: Constants) -> None:
    view, part = op.operands[0].type, op.results[0].type
    assert isinstance(view, TensorView) and isinstance(part, TensorView)
    offsets, sizes = op.clause("offsets") or (), op.clause("sizes") or ()
    _refuse_extents(op, "size", sizes, _dims(part, len(sizes)), constants)
    rows = zip(offsets, sizes, _dims(view, len(sizes)), strict=True)
    for axis, (offset, size, extent) in enumerate(rows):
        first, count = constants.get(offset, 0), constants.get(size, 0)
        if first < 0 or (extent is not None and first + count > extent):
            message = f"elements {first} to {first + count} of axis {axis} do not lie in a view of {extent or '?'}"
            raise PtoOperandError(message, help="the first element is 0, and the last lies inside the view")


def _window(op: Op, constants: Constants) -> None:
    tile = op.results[0].type
    assert isinstance(tile, TileBuf)
    if op.attributes["sizes"] != (tile.rows, tile.cols):
        sizes = "x".join(map(str, op.attributes["sizes"]))  # pyright: ignore[reportArgumentType]
        message = f"a window of {sizes} is no tile of {tile.rows}x{tile.cols}"
        raise PtoOperandError(message, help="the result has the sizes of the window")
    _refuse_valid(op, op.clause("valid") or (), tile, constants)


def _alloc(op: Op, constants: Constants) -> None:
    tile = op.results[0].type
    assert isinstance(tile, TileBuf)
    rows, cols = (op.clause(word) or () for word in ("valid_row", "valid_col"))
    for values, most in ((rows, tile.rows), (cols, tile.cols)):
        _refuse_range(op, values, (most,), (None,), constants)


def _set_valid(op: Op, constants: Constants) -> None:
    tile = op.operands[0].type
    assert isinstance(tile, TileBuf)
    _refuse_valid(op, op.operands[1:], tile, constants)


def _refuse_valid(op: Op, values: Iterable[Value], tile: TileBuf, constants: Constants) -> None:
    """Raise where a valid extent is not what the type says it is, or leaves the tile."""
    valid = tile.valid_rows, tile.valid_cols
    _refuse_range(op, values, (tile.rows, tile.cols), valid, constants)


def _refuse_range(op: Op, values: Iterable[Value], most: Iterable[int], said: Dims, constants: Constants) -> None:
    for value, limit, extent in zip(values, most, said, strict=False):
        number = constants.get(value)
        if number is None:
            continue
        if not 0 <= number <= limit:
            raise PtoValidShapeError(f"a valid extent of `{op.name}` is {number}", help=f"it is 0 to {limit}")
        if extent is not None and number != extent:
            message = f"a valid extent of `{op.name}` is {number}, and its result has {extent}"
            raise PtoValidShapeError(message, help=f"write {number} in the type, or `?`")


def _merge(op: Op, constants: Constants) -> None:
    for value in op.ins:
        number = constants.get(value)
        if number is not None and (number <= 0 or number % BLOCK_LENGTH):
            message = f"blocks of {number} elements cannot be merged"
            raise PtoOperandError(message, help=f"a block has a multiple of {BLOCK_LENGTH} elements")


RULES: dict[str, Rule] = {
    "pto.make_tensor_view": _view,
    "pto.partition_view": _partition,
    "pto.subview": _window,
    "pto.subset": _window,
    "pto.alloc_tile": _alloc,
    "pto.set_validshape": _set_valid,
    "pto.tmrgsort": _merge,
}
"""What an op asks of the constants among its operands."""
