"""Subscripts: windows of tensors and tiles, elements of tuples and arrays."""

from __future__ import annotations

import ast

from tilewright.core.build import scalar
from tilewright.core.expr import Const, Expr, MakeTuple, TupleGetItem, integer
from tilewright.core.linear import difference
from tilewright.core.types import ArrayType, ScalarType, ShapedType, TensorType, TileType, TupleType
from tilewright.errors import NotStaticError, OperandError, OutOfBoundsError, ShapeMismatchError, SubscriptError
from tilewright.frontend.indexed import taken, tiles_among
from tilewright.frontend.operators import apply
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS
from tilewright.records import record


@record
class Window:
    """A subscript of a tensor or tile: where it starts, how far it reaches, which axes are single indices."""

    offsets: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    dropped: tuple[int, ...]


def subscript(t: Translator, owner: Expr, node: ast.Subscript) -> Value:
    """Return a window of a tensor or tile, or an element of an array or of several results."""
    match owner.type:
        case TensorType() | TileType():
            if (parts := tiles_among(t, owner, node)) is not None:
                return taken(t, owner, parts, node)
            return _window_value(t, owner, window(t, owner, node), node)
        case ArrayType():
            index = t.expr(t.evaluate(node.slice), node.slice)
            return apply(
                t, OPS["array.get_element"].spec, {"array": owner, "index": index}, node, {"index": node.slice}
            )
        case TupleType():
            return _item(t, owner, owner.type, node)
        case _:
            help = "tensors, tiles, arrays and several results have elements"
            raise t.error(OperandError, node, f"{owner.type} cannot be subscripted", help=help)


def index(t: Translator, value: Value, node: ast.expr) -> Value:
    """Return what a Python sequence or mapping is indexed by; NotStaticError unless it is known."""
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Expr):
        help = "a pl.Tensor or pl.Array takes any index"
        raise t.error(NotStaticError, node, "a Python sequence is indexed by what the compiler knows", help=help)
    return value


def _item(t: Translator, owner: Expr, type_: TupleType, node: ast.Subscript) -> TupleGetItem:
    index = t.operand(node.slice)
    if not isinstance(index, int) or not -len(type_.elements) <= index < len(type_.elements):
        message = f"there are {len(type_.elements)} results, taken by a constant"
        raise t.error(OutOfBoundsError, node.slice, message, help="count from 0")
    return TupleGetItem(owner, index % len(type_.elements), type_.elements[index], t.span(node))


def _window_value(t: Translator, owner: Expr, found: Window, node: ast.Subscript) -> Value:
    rank = len(_shaped(owner).shape)
    if len(found.dropped) == rank:
        return apply(
            t, OPS["tensor.read"].spec, {"x": owner, "indices": MakeTuple(found.offsets)}, node, {"indices": node.slice}
        )
    bound = {
        "x": owner,
        "shape": MakeTuple(found.extents),
        "offset": MakeTuple(found.offsets),
        "valid_shape": None,
        "drop_dims": found.dropped or None,
        "pad_value": None,
        "clamp": False,
    }
    if isinstance(owner.type, TileType):
        bound["drop_dims"] = found.dropped[: max(0, rank - 2)] or None
        bound |= _tile_extents(t, owner.type, found, node)
    return apply(t, OPS["tensor.slice"].spec, bound, node, {"offset": node.slice, "shape": node.slice})


def _tile_extents(t: Translator, type_: TileType, found: Window, node: ast.Subscript) -> dict[str, Expr]:
    """Return the storage of a slice of a tile, which is static, and how much a bound that is not leaves valid."""
    shape: list[Expr] = []
    valid: list[Expr] = []
    for extent, lower, whole in zip(found.extents, found.offsets, type_.shape, strict=True):
        if isinstance(extent, Const):
            size, part = int(extent.value), extent
        elif isinstance(lower, Const):
            size = whole - int(lower.value)
            part = scalar("min", scalar("max", extent, integer(0)), integer(max(size, 0)))
        else:
            message = "a slice of a tile starts where the compiler knows, or has a width that it knows"
            raise t.error(SubscriptError, node.slice, message, help="write `tile[i : i + 8]`, or a constant start")
        if size <= 0:
            message = f"a slice of a tile must produce a positive static extent, got {size}"
            raise t.error(SubscriptError, node.slice, message, help="let it end after it starts")
        shape.append(extent if isinstance(extent, Const) else integer(size))
        valid.append(part)
    is_cut = any(not isinstance(extent, Const) for extent in found.extents)
    return {"shape": MakeTuple(tuple(shape)), **({"valid_shape": MakeTuple(tuple(valid))} if is_cut else {})}


def window(t: Translator, owner: Expr, node: ast.Subscript) -> Window:
    """Return what a subscript selects."""
    type_ = _shaped(owner)
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(parts) > len(type_.shape):
        message = f"{type_} has {len(type_.shape)} axes, this subscript {len(parts)}"
        raise t.error(ShapeMismatchError, node.slice, message, help="give each axis one index or slice")
    offsets: list[Expr] = []
    extents: list[Expr] = []
    dropped: list[int] = []
    for part in parts:
        _check_part(t, part)
    for axis in range(len(type_.shape)):
        part = parts[axis] if axis < len(parts) else ast.Slice()
        if isinstance(part, ast.Slice):
            lower, upper = _ends(t, owner, axis, part, node)
            offsets.append(lower)
            extents.append(difference(upper, lower))
        else:
            offsets.append(_index(t, part))
            extents.append(integer(1))
            dropped.append(axis)
    return Window(tuple(offsets), tuple(extents), tuple(dropped))


def _shaped(owner: Expr) -> ShapedType:
    assert isinstance(owner.type, (TensorType, TileType))
    return owner.type


def _check_part(t: Translator, part: ast.expr) -> None:
    """Raise for what NumPy would take and the language does not."""
    known = part.value if isinstance(part, ast.Constant) else part
    if known is None or known is Ellipsis or isinstance(part, (ast.Tuple, ast.List, ast.Starred)):
        help = "pl.reshape adds axes" if known is None else "write `:` for a whole axis"
        raise t.error(SubscriptError, part, "a subscript is an index or a slice per axis", help=help)


def _index(t: Translator, part: ast.expr) -> Expr:
    value = t.operand(part)
    index = t.expr(value, part)
    if not (isinstance(index.type, ScalarType) and index.type.dtype.is_int()):
        help = "use `//` to divide, or pl.cast(..., pl.INDEX)"
        raise t.error(OperandError, part, f"an index is an integer, got {index.type}", help=help)
    if isinstance(index, Const) and index.value < 0:
        help = "subtract from the extent, as in x.shape[0] - 1"
        raise t.error(SubscriptError, part, f"indices count from the front, got {index.value}", help=help)
    return index


def _ends(t: Translator, owner: Expr, axis: int, part: ast.Slice, node: ast.Subscript) -> tuple[Expr, Expr]:
    if part.step is not None:
        help = "take the whole slice, or loop over the elements you need"
        raise t.error(SubscriptError, part.step, "a slice has no step here", help=help)
    lower = integer(0) if part.lower is None else _index(t, part.lower)
    if part.upper is not None:
        return lower, _index(t, part.upper)
    shape = t.evaluate(ast.copy_location(ast.Attribute(node.value, "shape", ast.Load()), node))
    return lower, t.expr(shape[axis], node)
