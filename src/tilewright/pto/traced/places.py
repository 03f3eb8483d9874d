"""Places: `tile[row, column:]` as the address of an element, and `tile.valid_shape = [rows, cols]`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tilewright.errors import OperandError, SubscriptError, UnsupportedFeatureError
from tilewright.pto.module import Op, Value
from tilewright.pto.traced import arithmetic
from tilewright.pto.traced.attributes import address
from tilewright.pto.traced.scalars import as_index
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe, is_sequence
from tilewright.pto.types import TileBuf


@dataclass(frozen=True)
class Place:
    """An element of a tile: what ops take as a pointer and an offset."""

    pointer: Value
    offset: Value


def place(t: Tracer, owner: Value, node: ast.Subscript) -> Place:
    """Return the element that a subscript begins at; SubscriptError for what has none, or for an end."""
    tile = owner.type
    if not isinstance(tile, TileBuf) or tile.blayout != "row_major" or tile.slayout != "none_box":
        help = "tiles whose elements lie row by row have places, as in `tile[row, column:]`"
        raise t.error(SubscriptError, node, f"{describe(owner)} has no items", help=help)
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(indices) not in (1, 2) or (len(indices) == 1 and tile.rows != 1):
        help = "`tile[row, column:]`; a tile of one row also takes `tile[start:]`"
        raise t.error(SubscriptError, node, f"a place in {describe(owner)} takes a row and a column", help=help)
    row, column = [None, *(_start(t, each) for each in indices)][-2:]
    offset: object = t.evaluate(column) if column is not None else 0
    if row is not None:
        offset = _moved(t, t.evaluate(row), tile.cols, offset, node)
    return Place(address(t, owner, node), as_index(t, offset, node))


def _start(t: Tracer, node: ast.expr) -> ast.expr:
    if not isinstance(node, ast.Slice):
        return node
    if node.upper is not None or node.step is not None:
        help = "ops know themselves how much they read: write `start:`"
        raise t.error(SubscriptError, node, "a place has a start and no end", help=help)
    return node.lower or ast.copy_location(ast.Constant(0), node)


def _moved(t: Tracer, row: object, columns: int, column: object, node: ast.expr) -> object:
    """Return how many elements lie before one."""
    if isinstance(row, int) and isinstance(column, int):
        return row * columns + column
    where = ast.copy_location(ast.BinOp(node, ast.Mult(), node), node)
    before = arithmetic.binary(t, ast.Mult(), as_index(t, row, node), columns, where)
    return arithmetic.binary(t, ast.Add(), before, column, where)


def resize(t: Tracer, target: ast.Attribute, value: object, node: ast.expr) -> None:
    """Let as much of a tile be valid as an assignment says."""
    owner = t.evaluate(target.value)
    if target.attr != "valid_shape" or not isinstance(owner, Value) or not isinstance(owner.type, TileBuf):
        help = "of all attributes only `tile.valid_shape` can be assigned"
        raise t.error(UnsupportedFeatureError, target, f"`{ast.unparse(target)}` cannot be assigned", help=help)
    extents = value if is_sequence(value) else (value,)
    if len(extents) not in (1, 2) or (len(extents) == 1 and owner.type.rows != 1):
        message = f"a valid region has rows and columns, got {describe(value)}"
        raise t.error(OperandError, node, message, help="tile.valid_shape = [rows, cols]")
    rows, cols = (1, *extents)[-2:]
    operands = owner, as_index(t, rows, node), as_index(t, cols, node)
    t.writer.emit(Op("pto.set_validshape", operands, span=t.span(target)))


def is_resized(t: Tracer, made: ast.expr) -> bool:
    """Return whether the function assigns the valid shape of the tile that a call makes."""
    statements = [each for each in ast.walk(t.captured.node) if isinstance(each, ast.Assign)]
    targets = [target for each in statements for target in each.targets if isinstance(target, ast.Attribute)]
    resized = {ast.unparse(target.value) for target in targets if target.attr == "valid_shape"}
    bound = [pair for each in statements for target in each.targets for pair in _pairs(target, each.value)]
    return any(value is made and ast.unparse(target) in resized for target, value in bound)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return what an assignment binds to what, one by one."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return [pair for a, b in zip(target.elts, value.elts, strict=True) for pair in _pairs(a, b)]
    return [(target, value)]
