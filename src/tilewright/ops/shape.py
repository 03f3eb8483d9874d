"""Shape: views, windows and conversions of what is already there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Extents, Index, Tile, X
from tilewright.core.enums import AtomicType, MemorySpace, PadValue
from tilewright.core.expr import Expr
from tilewright.core.extents import as_extent, as_shape, fits
from tilewright.core.foreign_names import called
from tilewright.core.op import Effect, Undefined
from tilewright.core.region import Array, Region, shaded
from tilewright.core.types import (
    Extent,
    Shape,
    ShapedType,
    TensorType,
    TileType,
    reshaped,
    show_shape,
    static_shape,
    swapped,
)
from tilewright.dtypes import BF16, FP16, FP32
from tilewright.errors import DTypeMismatchError, ExecutionError, OperandError, ShapeMismatchError
from tilewright.ops.declare import ANY, TILE, UNIFIED, op
from tilewright.ops.families import origin_of, shaped
from tilewright.ops.memory import ATOMIC, write_window
from tilewright.ops.windows import CLAMP, CUT, check_part, check_rank, outside, starts_inside, tile_shape, valid_extents

__all__ = ["assemble", "concat", "extract", "set_validshape", "slice", "transpose", "transpose_view"]


def _slice_type(
    x: Expr,
    shape: tuple[Expr, ...],
    offset: tuple[Expr, ...],
    valid_shape: tuple[Expr, ...] | None,
    drop_dims: tuple[int, ...] | None,
    pad_value: object,
    clamp: bool,
) -> ShapedType:
    source = shaped(x)
    rank = len(source.shape)
    check_rank(shape, rank, "shape", "value")
    check_rank(offset, rank, "offset", "value")
    if valid_shape is not None:
        check_rank(valid_shape, rank, "valid_shape", "value")
    if clamp and isinstance(source, TileType):
        raise OperandError("clamp is for tensors", blame=["clamp"], help="a slice of a tile must lie inside it")
    extents = as_shape(shape) if isinstance(source, TensorType) else tile_shape(shape, "shape")
    if any(isinstance(extent, int) and extent < 0 for extent in extents):
        raise ShapeMismatchError(f"extents must not be negative, got {show_shape(extents)}", blame=["shape"])
    wanted = list(valid_extents(extents, valid_shape))
    for axis, (start, size, extent) in enumerate(zip(offset, extents, source.shape, strict=True)):
        fit = fits(start, size, extent)
        if fit is False and not (clamp and starts_inside(start)):
            raise outside(axis, start, size, extent, "offset", CLAMP if isinstance(source, TensorType) else "")
        if not (fit and fits(start, wanted[axis], source.valid[axis])):
            wanted[axis] = None if clamp or source.valid != source.shape else wanted[axis]
    dropped = _dropped(drop_dims, extents)
    kept = [axis for axis in range(rank) if axis not in dropped]
    return reshaped(source, tuple(extents[a] for a in kept), tuple(wanted[a] for a in kept))


def _dropped(drop_dims: Sequence[int] | None, extents: Shape) -> set[int]:
    rank = len(extents)
    if not all(-rank <= axis < rank for axis in drop_dims or ()):
        raise ShapeMismatchError(f"there are no axes {drop_dims} in {show_shape(extents)}", blame=["drop_dims"])
    dropped = {axis % rank for axis in drop_dims or ()}
    if any(extents[axis] != 1 for axis in dropped):
        raise ShapeMismatchError(
            f"only axes of extent 1 can be dropped from {show_shape(extents)}", blame=["drop_dims"]
        )
    return dropped


def _slice(
    result: ShapedType,
    x: Region,
    shape: tuple[int, ...],
    offset: tuple[int, ...],
    valid_shape: tuple[int, ...] | None,
    drop_dims: tuple[int, ...] | None,
    clamp: bool,
    **_: Any,
) -> Region:
    for axis, (start, size, extent) in enumerate(zip(offset, shape, x.data.shape, strict=True)):
        if start < 0 or size < 0 or (start + size > extent and not clamp):
            message = f"axis {axis}: a slice of {size} element(s) at {start} does not fit 0 to {extent}"
            raise ExecutionError(message, help=CUT if isinstance(result, TensorType) else "")
    data = x.data[tuple(np.s_[start : start + size] for start, size in zip(offset, shape, strict=True))]
    wanted = valid_shape or shape
    check_part(wanted, shape)
    valid = [max(0, min(w, v - s, d)) for w, v, s, d in zip(wanted, x.valid, offset, data.shape, strict=True)]
    dropped = {axis % data.ndim for axis in drop_dims or ()}
    kept = [axis for axis in range(data.ndim) if axis not in dropped]
    window = tuple(np.s_[start : start + size] for start, size in zip(offset, shape, strict=True))

    def cut(array: Array) -> Array:
        return np.reshape(array[window], [data.shape[a] for a in kept]) if dropped else array[window]

    view = x.moved(cut, [valid[a] for a in kept])
    return view.forgotten() if isinstance(result, TileType) else view


def _extract_type(
    src: Expr, index_row: Expr, index_col: Expr, shape: tuple[Expr, ...], target_memory: MemorySpace
) -> TileType:
    source, offset = shaped(src), (index_row, index_col)
    if len(source.shape) != 2:
        raise ShapeMismatchError(f"extract takes a part of a 2-D tile, got {source}", blame=["src"])
    for axis, (start, size, name) in enumerate(zip(offset, as_shape(shape), ("index_row", "index_col"), strict=False)):
        if fits(start, size, source.shape[axis]) is False:
            raise outside(axis, start, size, source.shape[axis], name, "make the part smaller")
    part = _slice_type(src, shape, offset, None, None, None, False)
    return TileType(static_shape(part.shape), part.dtype, part.valid, target_memory)


def _extract(result: TileType, src: Region, index_row: int, index_col: int, shape: tuple[int, ...], **_: Any) -> Region:
    return _slice(result, src, shape, (index_row, index_col), None, None, False)


def _assemble_type(target: Expr, source: Expr, offset: tuple[Expr, ...], atomic: AtomicType) -> ShapedType:
    into, given = shaped(target), shaped(source)
    if isinstance(into, TileType) and isinstance(given, TensorType):
        raise OperandError("a tile cannot take a tensor", blame=["target", "source"], help="load the tensor first")
    if atomic is AtomicType.Add and isinstance(into, TileType):
        raise OperandError("an atomic assemble adds to a tensor", blame=["target"], help="pl.add adds tiles")
    if atomic is AtomicType.Add and into.dtype not in ATOMIC:
        raise DTypeMismatchError(f"atomic add does not take {into.dtype} elements", blame=["target"])
    check_rank(offset, len(into.shape), "offset", "target")
    if len(given.shape) > len(into.shape):
        raise ShapeMismatchError(f"{given} has more axes than {into}", blame=["target", "source"])
    rounds = isinstance(given, TileType) and given.dtype == FP32 and into.dtype in (BF16, FP16)
    if given.dtype != into.dtype and not rounds:
        raise DTypeMismatchError(
            f"{given.dtype} elements cannot go into {into.dtype}",
            blame=["target", "source"],
            help=f"convert: pl.cast(source, pl.{into.dtype.symbol})",
        )
    valid = (1,) * (len(into.shape) - len(given.shape)) + given.valid
    sizes = (1,) * (len(into.shape) - len(given.shape)) + given.shape if isinstance(given, TileType) else valid
    for axis, (start, size, extent) in enumerate(zip(offset, sizes, into.shape, strict=True)):
        if fits(start, size, extent) is False:
            raise outside(axis, start, size, extent, "offset")
    if isinstance(into, TileType):
        reached = [_reached(*axis) for axis in zip(into.valid, offset, valid, into.shape, strict=True)]
        return TileType(into.shape, into.dtype, tuple(reached), into.memory)
    return into


def _reached(held: Extent, start: Expr, size: Extent, extent: int) -> Extent:
    """Return how far along an axis a tile is valid once a part has been written into it."""
    first = as_extent(start)
    if held == extent or not (isinstance(held, int) and isinstance(first, int) and isinstance(size, int)):
        return extent if held == extent else None
    return max(held, first + size) if size else held


def _assemble(
    result: ShapedType, target: Region, source: Region, offset: tuple[int, ...], atomic: AtomicType
) -> Region:
    if isinstance(result, TensorType):
        return write_window(target, source, offset, atomic)
    sizes = (1,) * (target.data.ndim - source.data.ndim) + source.valid
    ends = [held if 0 in sizes else max(held, at + n) for held, at, n in zip(target.valid, offset, sizes, strict=True)]
    return write_window(target.moved(np.array, ends), source, offset, atomic)


def _transpose_type(x: Expr, axis1: int, axis2: int) -> ShapedType:
    source = shaped(x)
    rank = len(source.shape)
    if not (-rank <= axis1 < rank and -rank <= axis2 < rank):
        raise ShapeMismatchError(f"axes {axis1} and {axis2} of a {rank}-D value do not exist", blame=["x"])
    return reshaped(source, swapped(source.shape, axis1, axis2), swapped(source.valid, axis1, axis2))


def _transpose(result: ShapedType, x: Region, axis1: int, axis2: int) -> Region:
    return x.moved(lambda array: np.swapaxes(array, axis1, axis2), swapped(x.valid, axis1, axis2))


def _turned_type(tile: Expr) -> ShapedType:
    return _transpose_type(tile, -1, -2)


def _turned(result: ShapedType, tile: Region) -> Region:
    return _transpose(result, tile, -1, -2)


def _concat_type(src0: Expr, src1: Expr) -> ShapedType:
    first, second = shaped(src0), shaped(src1)
    if first.dtype != second.dtype:
        raise DTypeMismatchError(
            f"concat needs equal element types, got {first.dtype} and {second.dtype}", blame=["src0", "src1"]
        )
    if first.shape[:-1] != second.shape[:-1] or not first.shape:
        raise ShapeMismatchError(f"all axes but the last must agree, got {first} and {second}", blame=["src0", "src1"])
    shape = (*first.shape[:-1], _sum(first.shape[-1], second.shape[-1]))
    return reshaped(first, shape, (*first.valid[:-1], _sum(first.shape[-1], second.valid[-1])))


def _sum(a: Extent, b: Extent) -> Extent:
    return a + b if isinstance(a, int) and isinstance(b, int) else None


def _concat(result: ShapedType, src0: Region, src1: Region) -> Region:
    joined = np.ascontiguousarray(np.concatenate([src0.data, src1.data], axis=-1))
    valid = (*src0.valid[:-1], src0.data.shape[-1] + src1.valid[-1])
    both = Region(joined, valid).forgotten()
    shade = np.concatenate([part.forgotten().shade(()) for part in (src0, src1)], axis=-1)
    return shaded(both, [shade[both.window]], origin_of([src0, src1]))


def _validshape_type(x: Expr, valid_rows: Expr, valid_cols: Expr) -> ShapedType:
    source = shaped(x)
    if len(source.shape) < 2:
        raise ShapeMismatchError(f"set_validshape needs two axes, got {source}", blame=["x"])
    last = tuple(e if isinstance(e := as_extent(v), int) else None for v in (valid_rows, valid_cols))
    for have, want, blame in zip(source.shape[-2:], last, ("valid_rows", "valid_cols"), strict=True):
        if isinstance(want, int) and (want < 0 or (isinstance(have, int) and want > have)):
            raise ShapeMismatchError(f"{want} does not fit an axis of {have}", blame=[blame])
    valid = (*source.valid[:-2], *last)
    if isinstance(source, TensorType) and source.is_window:  # which stays one
        return replace(source, valid=valid)
    return reshaped(source, source.shape, valid)


def _validshape(result: ShapedType, x: Region, valid_rows: int, valid_cols: int) -> Region:
    if not (0 <= valid_rows <= x.data.shape[-2] and 0 <= valid_cols <= x.data.shape[-1]):
        raise ExecutionError(f"a valid part of [{valid_rows}, {valid_cols}] does not fit {list(x.data.shape[-2:])}")
    return replace(x, valid=(*x.valid[:-2], valid_rows, valid_cols))


@op(
    kinds=UNIFIED, infer=_slice_type, evaluate=_slice, control_plane=True, accepts=ANY, alias="x",
    undefined=Undefined.MOVES,
    example="top = pl.slice(a, [8, 32], [0, 0])\nout = pl.store(top, [8, 0], out)",
)  # fmt: skip
def slice(
    x: X,
    shape: Extents,
    offset: Extents,
    valid_shape: Extents | None = None,
    drop_dims: Sequence[int] | None = None,
    pad_value: PadValue | None = None,
    clamp: bool = False,
) -> X:
    """Return a window of `x` from `offset` on: a view of a tensor, a copy of a tile.

    A slice of an accumulator is part of it: what `pl.matmul_acc` and its kin add to the slice, they add to the tile.
    """
    ...


@op(
    kinds=TILE, infer=_extract_type, evaluate=_extract, accepts=ANY, undefined=Undefined.MOVES,
    example="part = pl.tile.extract(a, 4, 0, [8, 32], target_memory=pl.Mem.Left)\nout = pl.store(part, [8, 0], out)",
)  # fmt: skip
def extract(src: Tile, index_row: Index, index_col: Index, shape: Extents, target_memory: MemorySpace) -> Tile:
    """Return a copy of the part of a 2-D tile that begins at a row and a column, in another memory space."""
    ...


@op(
    kinds=UNIFIED, infer=_assemble_type, evaluate=_assemble, effect=Effect.WRITE, alias="target", writes="target",
    control_plane=True, accepts=ANY, undefined=Undefined.MOVES,
    example="both = pl.assemble(a, pl.slice(b, [8, 32], [0, 0]), [8, 0])\nout = pl.store(both, [0, 0], out)",
)  # fmt: skip
def assemble(target: X, source: X | Tile, offset: Extents, atomic: AtomicType = AtomicType.None_) -> X:
    """Write `source` into `target` at `offset` and return it: a tensor in place, a tile as a new value.

    The new tile is valid as far as the old one and what was written into it reach. An fp32 tile is rounded where the
    target holds bf16 or fp16. With `atomic` a computed tile or tensor is added to what a tensor holds.
    """
    ...


@called(numpy="swapaxes", torch="transpose", triton="trans permute")
@op(
    kinds=UNIFIED, infer=_transpose_type, evaluate=_transpose, control_plane=True, accepts=ANY, alias="x", turns=True,
    undefined=Undefined.MOVES,
    example="turned = pl.transpose(pl.transpose(a, 0, 1), 0, 1)\nout = pl.store(turned, [0, 0], out)",
)  # fmt: skip
def transpose(x: X, axis1: int, axis2: int) -> X:
    """Return `x` with two axes swapped."""
    ...


@op(
    kinds=TILE, infer=_turned_type, evaluate=_turned, accepts=ANY, undefined=Undefined.MOVES,
    example="turned = pl.tile.transpose_view(pl.tile.transpose_view(a))\nout = pl.store(turned, [0, 0], out)",
)  # fmt: skip
def transpose_view(tile: Tile) -> Tile:
    """Return the tile with its last two axes swapped."""
    ...


@called(numpy="concatenate hstack", torch="cat", triton="cat join")
@op(
    kinds=UNIFIED, infer=_concat_type, evaluate=_concat, accepts=ANY, undefined=Undefined.MOVES,
    example="halves = pl.concat(pl.slice(a, [16, 16], [0, 0]), pl.slice(b, [16, 16], [0, 16]))\n"
    "out = pl.store(halves, [0, 0], out)",
)  # fmt: skip
def concat(src0: X, src1: X) -> X:
    """Return two values side by side along the last axis, the second one after all columns of the first."""
    ...


@op(
    kinds=UNIFIED, infer=_validshape_type, evaluate=_validshape, accepts=ANY, alias="x",
    undefined=Undefined.MOVES,
    example="some = pl.set_validshape(a, 5, 7)\nout = pl.store(some, [0, 0], out)",
)  # fmt: skip
def set_validshape(x: X, valid_rows: Index, valid_cols: Index) -> X:
    """Return `x` with only its first rows and columns valid; the elements stay where they are."""
    ...
