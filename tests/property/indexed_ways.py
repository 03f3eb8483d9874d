"""Indexed ways: how gathers and scatters come into random programs, with indices that point at something."""

from __future__ import annotations

from math import prod

from property.kernels import spelled
from property.operands import Shape, some_dtype, some_shape, stored, tensor_of, tile_of
from property.values import Value, dtype_of, shape_of
from property.way import called, cut_short, way
from property.writer import Plane, Writer

from tilewright import dtypes as dt
from tilewright.core.enums import MaskPattern
from tilewright.core.op import Kind, Op
from tilewright.dtypes import DataType
from tilewright.ops.indices import PICKED
from tilewright.ops.memory_gather import FETCHED, OUT_OF_BOUNDS
from tilewright.ops.registry import OPS
from tilewright.ops.row_gather import PAGED
from tilewright.ops.scatter import PUT


def indices(w: Writer, shape: Shape, count: int, dtype: DataType = dt.INT32) -> Value:
    """Return a tile of indices of what has so many elements, made of whatever numbers there are."""
    mixed = w.make(f"pl.and_({tile_of(w, shape, dt.INT32).name}, {(1 << count.bit_length()) - 1})", "i", keep=True)
    assert mixed is not None
    low = w.make(f"pl.minimum({mixed.name}, {count - 1})", "i", keep=True)
    assert low is not None
    if dtype == dt.INT32:
        return low
    narrow = w.make(f"pl.cast({low.name}, pl.{dtype.symbol})", "i", keep=True)
    assert narrow is not None
    return narrow


def listed(w: Writer, shape: Shape, count: int, dtype: DataType = dt.INT32) -> Value:
    """Return a tensor of indices."""
    return stored(w, indices(w, shape, count, dtype))


def index_type(w: Writer, dtype: DataType) -> DataType:
    """Return a type of indices that elements may be gathered by."""
    return dt.INT16 if dtype.bits == 16 and w.chance(40) else dt.INT32


def matrix(w: Writer) -> tuple[int, int]:
    """Return the shape of a matrix."""
    rows, columns = some_shape(w, (2,))
    return rows, columns


def few(w: Writer, extent: int) -> int:
    """Return an extent that is no larger than another."""
    return w.number(1, extent)


# gathers


@way("tensor.gather")
def _gather(w: Writer, op: Op) -> Value | None:
    if w.plane is not Plane.KERNEL:
        return None
    form = w.pick(["index", "index", "mask", "compare"])
    if form == "index":
        shape, dtype = some_shape(w, (2, 2, 3)), some_dtype(w, PICKED)
        axis = w.number(0, len(shape) - 1)
        asked = tuple(w.pick(w.extents) if i == axis else few(w, n) for i, n in enumerate(shape))
        index = listed(w, asked, shape[axis], index_type(w, dtype))
        return called(
            w, op, tensor_of(w, shape, dtype).name, f"dim={axis - w.pick([0, len(shape)])}", f"index={index.name}"
        )
    if form == "mask":
        source, pattern = _patterned(w, Kind.TENSOR)
        return called(w, op, source.name, f"mask_pattern={pattern}")
    shape, dtype = matrix(w), some_dtype(w, PICKED)
    given = f"kvalue={w.literal(dtype)}", f'cmp_mode="{w.pick(["eq", "ne", "lt", "le", "gt", "ge"])}"'
    return _either(w, op, tensor_of(w, shape, dtype).name, *given, f"out_cols={w.pick(w.extents)}")


def _either(w: Writer, op: Op, *arguments: str) -> Value | None:
    """Write a call that gives two values; return one of them."""
    both = called(w, op, *arguments)
    one = w.make(f"{both.name}[{w.number(0, 1)}]", "g", keep=True) if both is not None else None
    if both is not None:
        w.values.pop(both.name)
    return one


def _patterned(w: Writer, kind: Kind) -> tuple[Value, int]:
    rows, columns = matrix(w)
    pattern = w.pick(list(MaskPattern))
    shape = rows, columns * pattern.step
    dtype = some_dtype(w, (dt.FP32, dt.FP16, dt.INT8, dt.INT64, dt.BF16))
    source = tile_of(w, shape, dtype) if kind is Kind.TILE else tensor_of(w, shape, dtype)
    return source, int(pattern)


@way("tile.gather")
def _gather_tile(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w), some_dtype(w, PICKED)
    index = indices(w, some_shape(w), prod(shape), index_type(w, dtype))
    index = cut_short(w, index) if w.chance(40) else index
    return called(w, op, tile_of(w, shape, dtype).name, index.name)


@way("tile.gather_mask")
def _gather_mask(w: Writer, op: Op) -> Value | None:
    source, pattern = _patterned(w, Kind.TILE)
    return called(w, op, (cut_short(w, source) if w.chance(40) else source).name, str(pattern))


@way("tile.gather_compare")
def _gather_compare(w: Writer, op: Op) -> Value | None:
    dtype = some_dtype(w, PICKED)
    source = tile_of(w, matrix(w), dtype)
    source = cut_short(w, source) if w.chance(40) else source
    given = f"cmp_mode={w.number(0, 5)}", f"out_cols={w.pick(w.extents)}", f"offset={w.number(-3, 3)}"
    return _either(w, op, source.name, w.scalar(dtype), *given)


@way("tile.gatherb")
def _gather_blocks(w: Writer, op: Op) -> Value | None:
    dtype = some_dtype(w, (dt.FP32, dt.INT8, dt.FP16, dt.INT32))
    source = tile_of(w, (w.pick(w.extents), 32), dtype)
    offsets = indices(w, (w.pick([1, 2, 3]), 8), prod(shape_of(source)) * dtype.get_byte() - 31, dt.UINT32)
    offsets = cut_short(w, offsets) if w.chance(40) else offsets
    return called(
        w, op, source.name, offsets.name, *[f"output_dtype=pl.{w.pick(['INT8', 'INT16', 'FP32'])}"] * w.chance(50)
    )


@way("tile.mgather")
def _mgather(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w, (2, 2, 3)), some_dtype(w, FETCHED)
    by_row, mode = w.chance(50), w.pick(OUT_OF_BOUNDS)
    count = prod(shape[:-1]) if by_row else prod(shape)
    asked = w.pick([(1, w.pick(w.extents)), (w.pick(w.extents), 1)]) if by_row else matrix(w)
    index = indices(w, asked, count) if mode == "undefined" else tile_of(w, asked, dt.INT32)
    index = cut_short(w, index) if w.chance(30) else index
    given = f'"{"row" if by_row else "elem"}"', f'gather_oob="{mode}"'
    return called(w, op, tensor_of(w, shape, dtype).name, index.name, *given)


@way("tensor.create_l1")
def _create_l1(w: Writer, op: Op) -> Value | None:
    """Fill a new accumulator with a window of as many elements."""
    if w.plane is not Plane.KERNEL:
        return None
    shape, dtype = matrix(w), some_dtype(w, (dt.FP32, dt.FP16, dt.INT8))
    source = tensor_of(w, shape, dtype)
    made = w.make(f"pl.create_l1({list(shape)}, pl.{dtype.symbol})", "b")
    assert made is not None
    w.line(f"{made.name} = pl.gather_row({made.name}, {source.name}, [0, 0], [0, 0], {list(shape)})")
    return made


@way("tile.gather_row", "tensor.gather_row")
def _gather_row(w: Writer, op: Op) -> Value | None:
    if w.plane is not Plane.KERNEL:
        return None
    shape, dtype = matrix(w), some_dtype(w, (dt.FP32, dt.FP16, dt.INT8))
    turned = w.chance(40)
    tile = tile_of(w, shape, dtype)
    into = stored(w, tile) if op.kind is Kind.TENSOR else tile
    source = stored(w, tile_of(w, matrix(w), dtype))
    room = shape[::-1] if turned else shape
    size = tuple(few(w, min(a, b)) for a, b in zip(room, shape_of(source), strict=True))
    come = ", ".join(w.index(e - s)[0] for e, s in zip(shape_of(source), size, strict=True))
    go = ", ".join(w.index(e - s)[0] for e, s in zip(shape, size[::-1] if turned else size, strict=True))
    valid = f", valid_shape=[{', '.join(w.index(s)[0] for s in size)}]" if not turned and w.chance(40) else ""
    text = f"pl.gather_row({into.name}, {source.name}, [{go}], [{come}], {list(size)}, {turned}{valid})"
    return _updated(w, op, into, text)


def _updated(w: Writer, op: Op, target: Value, text: str) -> Value | None:
    """Write a call that changes a new tensor, or gives a tile."""
    if op.kind is Kind.TILE:
        return w.make(text, keep=True)
    w.act(text)
    return target


@way("tensor.paged_gather")
def _paged_gather(w: Writer, op: Op) -> Value | None:
    if w.plane is not Plane.KERNEL:
        return None
    blocks, size, columns = w.number(1, 4), w.number(1, 4), w.pick(w.extents)
    source = tensor_of(w, (blocks * size, columns), some_dtype(w, PAGED))
    table = listed(w, (w.number(1, 5),), blocks)
    index = listed(w, (w.number(1, 6),), shape_of(table)[0] * size)
    width = few(w, columns)
    given = str(size), str(width), str(shape_of(index)[0] + w.number(0, 2)), f"col_off={w.index(columns - width)[0]}"
    return called(w, op, source.name, index.name, table.name, *given, f"is_trans={w.chance(30)}")


# scatters


@way("tensor.scatter")
def _scatter(w: Writer, op: Op) -> Value | None:
    if w.plane is not Plane.KERNEL:
        return None
    shape = matrix(w)
    if w.chance(40):
        target, pattern = _patterned(w, Kind.TENSOR)
        rows, columns = shape_of(target)
        given = tensor_of(w, (rows, columns // MaskPattern(pattern).step), dtype_of(target))
        return called(w, op, given.name, f"mask_pattern={pattern}", f"dst={target.name}")
    dtype = some_dtype(w, PUT)
    asked = few(w, shape[0]), few(w, shape[1])
    index = listed(w, asked, shape[1], _scattered_by(dtype))
    named = f"dim={w.pick([1, -1])}", f"index={index.name}", f"src={tensor_of(w, asked, dtype).name}"
    return called(w, op, tensor_of(w, shape, dtype).name, *named)


def _scattered_by(dtype: DataType) -> DataType:
    return dt.INT32 if dtype.bits == 32 else dt.INT16


@way("tile.scatter")
def _scatter_tile(w: Writer, op: Op) -> Value | None:
    shape, asked, dtype = some_shape(w), some_shape(w), some_dtype(w, PUT)
    index, source = indices(w, asked, prod(shape), _scattered_by(dtype)), tile_of(w, asked, dtype)
    source = cut_short(w, source) if w.chance(40) else source
    return called(w, op, tile_of(w, shape, dtype).name, source.name, index.name)


@way("tile.scatter_mask")
def _scatter_mask(w: Writer, op: Op) -> Value | None:
    target, pattern = _patterned(w, Kind.TILE)
    rows, columns = shape_of(target)
    source = tile_of(w, (rows, columns // MaskPattern(pattern).step), dtype_of(target))
    source = cut_short(w, source) if w.chance(40) else source
    return called(w, op, target.name, source.name, str(pattern))


@way("tile.scatter_update", "tensor.scatter_update")
def _scatter_update(w: Writer, op: Op) -> Value | None:
    if w.plane is not Plane.KERNEL:
        return None
    (rows, columns), dtype = matrix(w), some_dtype(w, (dt.FP32, dt.FP16, dt.INT8, dt.INT64))
    b, s = w.number(1, 3), w.number(1, 3)
    in_blocks = w.chance(30)
    shape, given = ((rows, 2, 1, columns), (b, s, 1, columns)) if in_blocks else ((rows, columns), (b * s, columns))
    tile, source = tile_of(w, shape, dtype), tile_of(w, given, dtype)
    index = indices(w, (b, s), rows * (2 if in_blocks else 1))
    if op.kind is Kind.TENSOR:
        tile, source, index = stored(w, tile), stored(w, source), stored(w, index)
    orders = f"-2, {index.name}, {source.name}", f"{index.name}, {source.name}, dim=-2"
    return _updated(w, op, tile, f"pl.scatter_update({tile.name}, {w.pick(orders)})")


@way("tile.mscatter")
def _mscatter(w: Writer, op: Op) -> Value | None:
    if w.plane is not Plane.KERNEL:
        return None
    shape, asked, dtype = some_shape(w), some_shape(w), some_dtype(w, PICKED)
    target, source = stored(w, tile_of(w, shape, dtype)), tile_of(w, asked, dtype)
    source = cut_short(w, source) if w.chance(40) else source
    w.act(f"pl.mscatter({source.name}, {indices(w, asked, prod(shape)).name}, {target.name})")
    return target


# updates


@way("tile.take", "tile.put", *(name for name, op in OPS.items() if op.spec.is_atomic))
def _at_places(w: Writer, op: Op) -> Value | None:
    """Read or change elements of a new tensor, or rows of it; see what they were, or what has become of it."""
    if w.plane is not Plane.KERNEL:
        return None
    shape, dtype = some_shape(w, (1, 2, 2, 3)), some_dtype(w, op.spec.accepts)
    target, by_row = stored(w, tile_of(w, shape, dtype)), len(shape) > 1 and w.chance(60)
    asked = w.pick([(1, w.pick(w.extents)), (w.pick(w.extents), 1)]) if by_row else some_shape(w)
    index = indices(w, asked, prod(shape[:1] if by_row else shape))
    whole = (prod(asked), *shape[1:]) if by_row else asked
    given = [tile_of(w, whole, dtype).name] * ("compare" in op.spec.names)
    given += [_given(w, whole, dtype)] if "values" in op.spec.names else []
    given += [] if by_row or len(shape) == 1 else ["axis=None"]
    given += [f"mask={_mask(w, asked)}"] if w.chance(30) else []
    text = f"{spelled(op.spec, op.kind)}({', '.join([target.name, index.name, *given])})"
    if op.spec.alias is None and w.chance(50 if op.spec.is_atomic else 100):
        return w.make(text, keep=True)
    w.act(text)
    return target


def _mask(w: Writer, shape: Shape) -> str:
    mask = w.make(f"{tile_of(w, shape, dt.FP32).name} > 0.5", "m", keep=True)
    assert mask is not None
    return mask.name


def _given(w: Writer, shape: Shape, dtype: DataType) -> str:
    """Return a number, or an element for each place."""
    if w.chance(30):
        return w.literal(dtype)
    tile = tile_of(w, shape, dtype)
    return (cut_short(w, tile) if w.chance(30) else tile).name


@way("tile.pick")
def _pick(w: Writer, op: Op) -> Value | None:
    """Take rows or columns that indices in a line name, of a tile that may be cut short along its other axes."""
    shape, count, axis = some_shape(w, (2, 2, 3)), w.pick(w.extents), w.pick([0, 0, -1])
    index = indices(w, w.pick([(1, count), (count, 1)]), shape[axis])
    source = tile_of(w, shape, some_dtype(w, op.spec.accepts))
    if w.chance(40):
        sizes = [w.index(extent)[0] for extent in shape]
        sizes[axis] = str(shape[axis])
        cut = f"pl.slice({source.name}, {list(shape)}, {[0] * len(shape)}, valid_shape=[{', '.join(sizes)}])"
        source = w.make(cut, keep=True) or source
    return called(w, op, source.name, index.name, *[f"axis={axis}"] * (axis < 0))


@way("tile.ravel_index")
def _ravel(w: Writer, op: Op) -> Value | None:
    """Number the elements that an index along each of two axes names."""
    (rows, columns), asked = matrix(w), matrix(w)
    outer, inner = indices(w, w.pick([asked, (asked[0], 1)]), rows), indices(w, w.pick([asked, (1, asked[1])]), columns)
    return called(w, op, w.pick([outer.name, w.index(rows - 1)[0]]), inner.name, f"[{rows}, {columns}]")
