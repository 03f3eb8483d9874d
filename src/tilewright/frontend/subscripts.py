"""Subscripts: windows of tensors and tiles, elements of tuples and arrays."""

from __future__ import annotations

import ast

from tilewright.core.build import scalar
from tilewright.core.expr import Const, Expr, MakeTuple, TupleGetItem, integer
from tilewright.core.extents import as_scalar, as_shape
from tilewright.core.linear import difference
from tilewright.core.types import ArrayType, ScalarType, ShapedType, TensorType, TileType, TupleType
from tilewright.errors import NotStaticError, OperandError, OutOfBoundsError, ShapeMismatchError, SubscriptError
from tilewright.frontend.indexed import taken, tiles_among
from tilewright.frontend.kept_axes import kept_axes, note_kept
from tilewright.frontend.operators import apply
from tilewright.frontend.picks import check_no_mask, picked
from tilewright.frontend.properties import extent_value
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS
from tilewright.records import record


@record
class Window:
    """A subscript of a tensor or tile: where it starts, how far it reaches, which axes are single indices."""

    offsets: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    """How far it reaches along each axis, all that steps pass over included."""
    dropped: tuple[int, ...]
    steps: tuple[int, ...]
    """How far it is from one element to the next along each axis."""
    added: tuple[int, ...]
    """Before which axis each new one stands."""

    @property
    def is_odd(self) -> bool:
        """Whether it is more than one box of the tensor or tile, as it lies there."""
        return bool(self.added) or any(step != 1 for step in self.steps)


def subscript(t: Translator, owner: Expr, node: ast.Subscript) -> Value:
    """Return a window of a tensor or tile, or an element of an array or of several results."""
    match owner.type:
        case TensorType() | TileType():
            if (parts := tiles_among(t, owner, node)) is not None:
                check_no_mask(t, parts, node)
                return taken(t, owner, parts, node)
            if isinstance(owner.type, TileType) and (found := picked(t, owner, node)) is not None:
                return found
            owner = _as_numpy(t, owner, node)
            return window_value(t, owner, window(t, owner, node), node)
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


def _as_numpy(t: Translator, owner: Expr, node: ast.Subscript) -> Expr:
    """Return a tile without the axes that indices left it, where a subscript adds axes to those that NumPy has."""
    given = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    kept = kept_axes(t, owner) if t.kept and isinstance(owner.type, TileType) else frozenset[int]()
    shape = _shaped(owner).shape
    if not kept or len(kept) == len(shape) or not any(_adds_axis(t, part) for part in given):
        return owner
    left = tuple(n for axis, n in enumerate(shape) if axis - len(shape) not in kept)
    bound = {"x": owner, "shape": MakeTuple(tuple(map(as_scalar, left)))}
    return t.placed(apply(t, OPS["tensor.reshape"].spec, bound, node, {}), node)


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


def window_value(t: Translator, owner: Expr, found: Window, node: ast.Subscript) -> Value:
    """Return what a subscript selects of a tensor, as a view, or of a tile; one element is a number."""
    rank = len(_shaped(owner).shape)
    if rank and len(found.dropped) == rank and not found.added:
        return apply(
            t, OPS["tensor.read"].spec, {"x": owner, "indices": MakeTuple(found.offsets)}, node, {"indices": node.slice}
        )
    dropped = found.dropped if isinstance(owner.type, TensorType) else found.dropped[: max(0, rank - 2)]
    value: Expr = owner
    if not _is_whole(_shaped(owner), found):
        value = _slice(t, owner, found, dropped, node)
    if len(dropped) < len(found.dropped):
        note_kept(t, value, [axis - len(dropped) for axis in found.dropped[len(dropped) :]], node)
    if any(step < 0 for step in found.steps):
        value = _flipped(t, value, found, dropped, node)
    if any(abs(step) != 1 for step in found.steps):
        steps = tuple(abs(step) for axis, step in enumerate(found.steps) if axis not in dropped)
        bound = {"x": t.placed(value, node), "steps": steps}
        value = apply(t, OPS["tensor.strided"].spec, bound, node, {"steps": node.slice})
    return _with_axes(t, value, found, dropped, node) if found.added else value


def _flipped(t: Translator, value: Expr, found: Window, dropped: tuple[int, ...], node: ast.Subscript) -> Expr:
    """Return a part of a tile in the opposite order along the axes whose steps go back."""
    if not isinstance(value.type, TileType):
        help = "load it forward, and turn the tile: pl.load(...)[::-1]"
        raise t.error(SubscriptError, node.slice, "a view of a tensor goes forward along every axis", help=help)
    kept = [step for axis, step in enumerate(found.steps) if axis not in dropped]
    axes = tuple(axis for axis, step in enumerate(kept) if step < 0)
    return apply(t, OPS["tile.flip"].spec, {"x": t.placed(value, node), "axis": axes}, node, {})


def _is_whole(type_: ShapedType, found: Window) -> bool:
    """Return whether a subscript leaves nothing out but what its steps pass over."""
    if not found.is_odd:
        return False  # a slice is another value, of which something else can be made
    starts = all(isinstance(offset, Const) and offset.value == 0 for offset in found.offsets)
    return starts and not found.dropped and as_shape(found.extents) == type_.shape


def _slice(t: Translator, owner: Expr, found: Window, dropped: tuple[int, ...], node: ast.Subscript) -> Expr:
    bound = {
        "x": owner,
        "shape": MakeTuple(found.extents),
        "offset": MakeTuple(found.offsets),
        "valid_shape": None,
        "drop_dims": dropped or None,
        "pad_value": None,
        "clamp": False,
    }
    if isinstance(owner.type, TileType):
        bound |= _tile_extents(t, owner.type, found, node)
    return apply(t, OPS["tensor.slice"].spec, bound, node, {"offset": node.slice, "shape": node.slice})


def _with_axes(t: Translator, value: Expr, found: Window, dropped: tuple[int, ...], node: ast.Subscript) -> Expr:
    """Return a value with axes of one element where `None` stands."""
    value = t.placed(value, node)
    extents = [t.expr(extent_value(t, value, axis, node), node) for axis in range(len(_shaped(value).shape))]
    shape: list[Expr] = []
    for axis in range(len(found.offsets) + 1):
        shape += [integer(1)] * found.added.count(axis)
        if axis < len(found.offsets) and axis not in dropped:
            extent = extents.pop(0)
            shape += [extent] if axis not in found.dropped else []
    return apply(t, OPS["tensor.reshape"].spec, {"x": value, "shape": MakeTuple(tuple(shape))}, node, {})


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
    parts = _parts(t, type_, node)
    offsets: list[Expr] = []
    extents: list[Expr] = []
    dropped: list[int] = []
    steps: list[int] = []
    added: list[int] = []
    for part in parts:
        axis = len(offsets)
        if part is None:
            added.append(axis)
            continue
        lower, extent, step = _axis(t, owner, axis, part, node)
        offsets.append(lower)
        extents.append(integer(1) if extent is None else extent)
        steps.append(step)
        dropped += [axis] if extent is None else []
    return Window(tuple(offsets), tuple(extents), tuple(dropped), tuple(steps), tuple(added))


def _parts(t: Translator, type_: ShapedType, node: ast.Subscript) -> list[ast.expr | None]:
    """Return one index or slice for each axis, in place of `...` as many as are missing, and None for new axes."""
    given = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in given:
        if isinstance(part, (ast.Tuple, ast.List, ast.Starred)):
            help = "write an index or a slice for each axis; pl.cat([t[0:1], t[2:3]], axis=0) is two rows of a tile"
            raise t.error(SubscriptError, part, "a subscript is an index or a slice per axis", help=help)
    parts = [None if _adds_axis(t, part) else part for part in given]
    missing = len(type_.shape) - sum(part is not None and not _is_constant(part, ...) for part in parts)
    dots = [place for place, part in enumerate(parts) if part is not None and _is_constant(part, ...)]
    if len(dots) > 1:
        raise t.error(SubscriptError, given[dots[1]], "`...` stands in a subscript once", help="write `:` for an axis")
    if missing < 0:
        message = f"{type_} has {len(type_.shape)} axes, this subscript {len(type_.shape) - missing}"
        raise t.error(ShapeMismatchError, node.slice, message, help="give each axis one index or slice")
    place = dots[0] if dots else len(parts)
    return [*parts[:place], *[ast.Slice()] * missing, *parts[place + len(dots) :]]


def _adds_axis(t: Translator, part: ast.expr) -> bool:
    """Return whether a part of a subscript is None, as it stands there or under a name such as `np.newaxis`."""
    return _is_constant(part, None) or (isinstance(part, (ast.Name, ast.Attribute)) and t.evaluate(part) is None)


def _is_constant(part: ast.expr, value: object) -> bool:
    return isinstance(part, ast.Constant) and part.value is value


def _shaped(owner: Expr) -> ShapedType:
    assert isinstance(owner.type, (TensorType, TileType))
    return owner.type


def _axis(t: Translator, owner: Expr, axis: int, part: ast.expr, node: ast.Subscript) -> tuple[Expr, Expr | None, int]:
    """Return where an index or a slice starts along an axis, how far it reaches, None for an index, and its step."""
    if not isinstance(part, ast.Slice):
        return _index(t, owner, axis, part, node), None, 1
    step = _step(t, part)
    first, last = (part.lower, part.upper) if step > 0 else (part.upper, part.lower)
    lower = integer(0) if first is None else _index(t, owner, axis, first, node)
    upper = _extent(t, owner, axis, node) if last is None else _index(t, owner, axis, last, node)
    if step < 0:  # from the element that is written first down to the one after the second
        lower = lower if first is None else scalar("add", lower, integer(1))
        upper = (
            upper if last is None else scalar("min", scalar("add", upper, integer(1)), _extent(t, owner, axis, node))
        )
    if t.frame is not None and step > 0:
        upper = _within(t, owner, axis, lower, upper, node)
    return lower, difference(upper, lower), step


def _within(t: Translator, owner: Expr, axis: int, lower: Expr, upper: Expr, node: ast.Subscript) -> Expr:
    """Return where a slice ends that is written to end behind its axis: with it, as in Python."""
    extent = _extent(t, owner, axis, node)
    known = [int(each.value) for each in (lower, upper, extent) if isinstance(each, Const)]
    return extent if len(known) == 3 and 0 <= known[0] < known[2] < known[1] else upper


def _index(t: Translator, owner: Expr, axis: int, part: ast.expr, node: ast.Subscript) -> Expr:
    """Return an index along an axis; a constant that is negative counts from the end."""
    index = t.expr(t.operand(part), part)
    if not (isinstance(index.type, ScalarType) and index.type.dtype.is_int()):
        help = "use `//` to divide, or pl.cast(..., pl.INDEX)"
        if isinstance(index.type, TileType):
            help = "a tile is a value: pl.where(mask, new, t) chooses, and pl.tile.scatter moves elements to indices"
        elif isinstance(index.type, TensorType):
            name = ast.unparse(part)
            help = (
                f"pl.load({name}, offsets, shapes) makes a tile of indices, which gathers; pl.read({name}, [i]) is one"
            )
        raise t.error(OperandError, part, f"an index is an integer, got {index.type}", help=help)
    if isinstance(index, Const) and index.value < 0:
        type_ = _shaped(owner)
        if type_.valid[axis] != type_.shape[axis]:
            message = f"what counts from the end of an axis counts all of it, and {type_} is valid in part"
            help = "count from the front; t[::-1] begins at the last valid element"
            raise t.error(SubscriptError, part, message, help=help)
        return scalar("sub", _extent(t, owner, axis, node), integer(-int(index.value)))
    return index


def _extent(t: Translator, owner: Expr, axis: int, node: ast.AST) -> Expr:
    return t.expr(extent_value(t, owner, axis, node), node)


def _step(t: Translator, part: ast.Slice) -> int:
    if part.step is None:
        return 1
    step = index(t, t.operand(part.step), part.step)
    if not isinstance(step, int) or isinstance(step, bool) or not step:
        help = "a step is a constant other than zero: pl.strided(x, steps) and pl.flip(x, axis) say the same by name"
        raise t.error(SubscriptError, part.step, f"a slice has no step of {t.describe(step)}", help=help)
    return int(step)
