"""Writes: what goes into elements and windows of tensors, tiles, arrays and lists."""

from __future__ import annotations

import ast

from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call, Const, Expr, MakeTuple, Var, integer
from tilewright.core.extents import as_scalar
from tilewright.core.operands import bind
from tilewright.core.stmt import EvalStmt
from tilewright.core.types import ArrayType, ScalarType, TensorType, TileType, is_fully_valid, show_shape
from tilewright.dtypes import BOOL, DataType
from tilewright.errors import DTypeMismatchError, ElementWriteError, OperandError, OutOfBoundsError, ShapeMismatchError
from tilewright.frontend import indexed
from tilewright.frontend.derived import Writer
from tilewright.frontend.kept_axes import is_kept_column
from tilewright.frontend.lists import replace_item
from tilewright.frontend.operators import apply
from tilewright.frontend.picks import check_no_mask, masked_write
from tilewright.frontend.subscripts import Window, window, window_value
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Listed, Value
from tilewright.ops.derived import on
from tilewright.ops.registry import OPS


def write(t: Translator, target: ast.Subscript, value: Value, source: ast.expr) -> None:
    """Translate `owner[window] = value`."""
    owner = t.operand(target.value)
    span = t.span(target)
    if isinstance(owner, Listed) and isinstance(target.value, ast.Name) and t.find(target.value.id) is not None:
        replace_item(t, target, value, source)
        return
    if not isinstance(owner, Expr) or not isinstance(target.value, ast.Name):
        name, key, given = (ast.unparse(each) for each in (target.value, target.slice, source))
        help = (
            f"write `{name} = {{**{name}, {key}: {given}}}`" if isinstance(owner, dict) else "bind it to a name first"
        )
        raise OperandError("only a named tensor, tile or array can be written", spans=[span], help=help)
    if isinstance(owner.type, ArrayType):
        index = t.expr(t.evaluate(target.slice), target.slice)
        bound = {"array": owner, "index": index, "value": t.expr(value, source)}
        updated = apply(t, OPS["array.update_element"].spec, bound, target, {"index": target.slice, "value": source})
        t.assign(target.value.id, updated, target.value)
        return
    if not isinstance(owner.type, (TensorType, TileType)):
        help = "tensors, tiles and arrays have elements"
        raise OperandError(f"{owner.type} has no elements to write", spans=[span], help=help)
    if (parts := indexed.tiles_among(t, owner, target)) is not None:
        check_no_mask(t, parts, target, "pl.store(tile, offsets, out, mask=mask) writes where a mask is True")
        t.assign(target.value.id, indexed.put(t, owner, parts, value, target), target.value)
        return
    is_tile = isinstance(owner.type, TileType)
    if is_tile and (changed := masked_write(t, target, value, source)) is not None:
        t.assign(target.value.id, changed, target.value)
        return
    found = window(t, owner, target)
    if len(found.dropped) == len(owner.type.shape):
        known = [str(offset.value) for offset in found.offsets if isinstance(offset, Const)]
        index = ", ".join(known) if len(known) == len(found.offsets) else ast.unparse(target.slice).strip("()")
        help = f"pl.write({target.value.id}, [{index}], {ast.unparse(source)})"
        raise ElementWriteError("one element is written with pl.write", spans=[span], help=help)
    given = _filling(t, owner, found, t.expr(value, source), source) if is_tile else t.expr(value, source)
    if found.is_odd or (not is_tile and not isinstance(given.type, TileType) and _has_other_axes(found, given)):
        _write_view(t, owner, found, given, target, source)
        return
    given = _repeated(t, found.extents, _with_axes(t, found, given, source), source)
    _check_window(t, found.extents, given, source)
    bound = {"target": owner, "source": given, "offset": MakeTuple(found.offsets), "atomic": AtomicType.None_}
    spans = {"offset": target.slice, "source": source, "target": target.value}
    try:
        written = apply(t, OPS["tensor.assemble"].spec, bound, target, spans)
    except DTypeMismatchError as error:
        error.hint = _sum_in_full(t, given, owner.type.dtype) or error.hint
        raise
    except OutOfBoundsError:
        if t.frame is None or is_tile or not isinstance(given.type, TileType):
            raise
        written = _stored(t, owner, found, given, target, source)  # a tile may be larger than the whole tensor
    t.assign(target.value.id, written, target.value)


def _sum_in_full(t: Translator, given: Expr, dtype: DataType) -> str:
    """Return how a product of short integers is summed in longer ones: one that is cast has wrapped around before."""
    made = t.assigned.get(given) if isinstance(given, Var) else given
    if not isinstance(made, Call) or made.op.name != "tensor.matmul" or not dtype.is_int():
        return ""
    return f"pl.matmul(a, b, out_dtype=pl.{dtype.symbol}) sums in it; a cast comes after the sum has wrapped around"


def _stored(t: Translator, owner: Expr, found: Window, given: Expr, target: ast.Subscript, source: ast.expr) -> Expr:
    """Write what is valid of a tile to where a window begins."""
    spec = OPS["tile.store"].spec
    bound = bind(spec, (given, MakeTuple(found.offsets), owner), {})
    return apply(t, spec, bound, target, {"offsets": target.slice, "tile": source, "output_tensor": target.value})


def _filling(t: Translator, owner: Expr, found: Window, given: Expr, source: ast.expr) -> Expr:
    """Return what goes into a window of a tile that is all valid: a number as often as the window has room."""
    assert isinstance(owner.type, TileType)
    fixed = all(isinstance(extent, Const) for extent in found.extents) and is_fully_valid(owner.type)
    if not isinstance(given.type, ScalarType) or found.is_odd or not fixed:
        return given
    bound = {"shape": MakeTuple(found.extents), "dtype": owner.type.dtype, "value": given, "valid_shape": None}
    return t.expr(apply(t, OPS["tile.full"].spec, bound, source, {"value": source}), source)


def _has_other_axes(found: Window, given: Expr) -> bool:
    """Return whether what goes into a window has not all of its axes: a number has none, and indices take some away."""
    if not isinstance(given.type, (TensorType, TileType)):
        return isinstance(given.type, ScalarType)
    is_short = len(given.type.shape) <= len(found.extents) - len(found.dropped)
    return is_short and found.dropped != tuple(range(len(found.dropped)))


def _with_axes(t: Translator, found: Window, given: Expr, source: ast.expr) -> Expr:
    """Return a tile that goes into a window with one element along each axis that an index took away."""
    axes = len(found.extents) - len(found.dropped)
    if not isinstance(given.type, TileType) or len(given.type.shape) != axes or not _has_other_axes(found, given):
        return given
    own = iter(given.type.shape)
    shape = tuple(1 if axis in found.dropped else next(own) for axis in range(len(found.extents)))
    w = Writer(t, source)
    return w.named(w.do("tile.reshape", x=given, shape=shape))


def _repeated(t: Translator, extents: tuple[Expr, ...], given: Expr, source: ast.expr) -> Expr:
    """Return what goes into a window as often as that has room for it along axes of one element."""
    shape = tuple(int(extent.value) for extent in extents if isinstance(extent, Const))
    if not isinstance(given.type, (TensorType, TileType)) or len(shape) != len(extents):
        return given
    if not all(isinstance(extent, int) for extent in given.type.shape) or not is_fully_valid(given.type):
        return given
    own = (1,) * (len(shape) - len(given.type.shape)) + given.type.shape
    if own == shape or not all(n in (1, most) for n, most in zip(own, shape, strict=False)):
        return given
    if len(own) > len(shape) or (shape[-1] > 1 and is_kept_column(t, given)):
        return given
    w = Writer(t, source)
    everywhere = w.named(w.do(f"{on(given)}.full", shape=shape, dtype=BOOL, value=True))
    return w.named(w.do(f"{on(given)}.where", condition=everywhere, x=given, y=given))


def _write_view(
    t: Translator, owner: Expr, found: Window, given: Expr, target: ast.Subscript, source: ast.expr
) -> None:
    """Write into every second element, under new axes or without some: into a view of the tensor that shows those."""
    if not isinstance(owner.type, TensorType):
        help = "a tile is a value: put the parts together with pl.concat, or store them into a tensor so"
        raise t.error(OperandError, target, "steps and new axes are written into tensors", help=help)
    view = t.expr(window_value(t, owner, found, target), target)
    assert isinstance(view.type, TensorType)
    if isinstance(given.type, ScalarType):
        bound = {"target": view, "scalar": given}
        given = t.expr(apply(t, OPS["tensor.expands"].spec, bound, source, {"scalar": source}), source)
    extents = tuple(map(as_scalar, view.type.shape)) if None not in view.type.shape else ()
    given = _repeated(t, extents, given, source)
    _check_window(t, extents, given, source)
    zeros = MakeTuple(tuple(integer(0) for _ in view.type.shape))
    bound = {"target": view, "source": given, "offset": zeros, "atomic": AtomicType.None_}
    written = apply(t, OPS["tensor.assemble"].spec, bound, target, {"source": source, "target": target.value})
    t.emit(EvalStmt(written, t.span(target)))


def _check_window(t: Translator, extents: tuple[Expr, ...], given: Expr, source: ast.expr) -> None:
    """Raise when the source of a window write is known to have another extent."""
    if not isinstance(given.type, (TensorType, TileType)):
        help = "pl.tile_full(shape, dtype=pl.FP32, value=0.0) is a tile of one number; "
        help += "where a tile is partly valid, choose: t = pl.where(pl.iota([rows, columns], axis=1) < 3, 0.0, t)"
        raise t.error(OperandError, source, f"a window takes a tensor or tile, got {given.type}", help=help)
    pad = len(extents) - len(given.type.shape)
    shape, valid = (1,) * pad + given.type.shape, (1,) * pad + given.type.valid
    for want, have, part in zip(extents, shape, valid, strict=False):
        if isinstance(want, Const) and isinstance(have, int) and want.value != have and part != want.value:
            sizes = show_shape(tuple(e.value if isinstance(e, Const) else None for e in extents))  # pyright: ignore[reportArgumentType]
            message = f"a window of {sizes} cannot take {given.type}"
            raise t.error(ShapeMismatchError, source, message, help="make the window as large as what goes into it")
