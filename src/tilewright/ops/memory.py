"""Memory: tiles stored into tensors, fresh storage, single elements.

A store never drops data: what does not fit is refused, before the program runs where that can be shown.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access, touch
from tilewright.core.annotations import Extents, Number, Scalar, Tensor, Tile, X
from tilewright.core.enums import AtomicType, MemorySpace, TensorLayout, TileLayout
from tilewright.core.expr import Expr, constant
from tilewright.core.extents import as_scalar, as_shape, dtype_of, fits
from tilewright.core.foreign_names import called
from tilewright.core.op import Effect, Undefined
from tilewright.core.region import Region, exact, overlaps_itself, unwritten, whole
from tilewright.core.types import ScalarType, ShapedType, TensorType, TileType, show_shape, static_shape, tensor, tile
from tilewright.dtypes import BF16, FP16, FP32, FP64, INDEX, INT8, INT16, INT32, DataType, round_scalar, round_to
from tilewright.errors import DTypeMismatchError, ExecutionError, OperandError, OutOfBoundsError, ShapeMismatchError
from tilewright.ops.declare import ANY, TENSOR, TILE, UNIFIED, op
from tilewright.ops.families import shaped
from tilewright.ops.masked import MASKS, check_alone, check_mask, write_masked
from tilewright.ops.windows import NARROW, check_rank, outside, tile_shape

__all__ = ["create_tensor", "create_tile", "dim", "move", "read", "store", "write"]

ATOMIC = frozenset((FP64, FP32, BF16, FP16, INT32, INT16, INT8))


def _store_type(
    tile: Expr,
    offsets: tuple[Expr, ...],
    output_tensor: Expr,
    shapes: tuple[Expr, ...] | None,
    atomic: AtomicType,
    mask: Expr | None,
) -> TensorType:
    source, target = shaped(tile), shaped(output_tensor)
    assert isinstance(source, TileType) and isinstance(target, TensorType)
    rank = len(target.shape)
    check_rank(offsets, rank, "offsets", "tensor")
    if len(source.shape) > rank:
        raise ShapeMismatchError(f"{source} has more axes than {target}", blame=["tile", "output_tensor"])
    if source.dtype != target.dtype and not _rounds_on_the_way(source, target):
        raise DTypeMismatchError(
            f"a {source.dtype} tile cannot be stored into a {target.dtype} tensor",
            blame=["tile", "output_tensor"],
            help=f"convert it: pl.cast(tile, pl.{target.dtype.symbol})",
        )
    if atomic is AtomicType.Add and target.dtype not in ATOMIC:
        help = "pl.atomic_add adds at computed places, every number"
        raise DTypeMismatchError(
            f"atomic add does not take {target.dtype} elements", blame=["output_tensor"], help=help
        )
    if mask is not None:
        check_mask(shaped(mask), source.shape, is_whole=False)
        check_alone({"shapes": shapes, "atomic": atomic if atomic is AtomicType.Add else None}, "store")
        return target
    valid = (1,) * (rank - len(source.shape)) + source.valid
    if shapes is not None:
        valid = _partition(source, shapes, rank)
    for axis, (offset, size, extent) in enumerate(zip(offsets, valid, target.shape, strict=True)):
        if fits(offset, size, extent) is False:
            is_row = len(source.shape) < rank and axis == rank - 1
            raise outside(axis, offset, size, extent, "offsets", ROW if is_row else NARROW)
    return target


ROW = "a tile of fewer axes is a row: keepdims=True keeps the axis of a fold, and pl.reshape makes a column"


def _rounds_on_the_way(source: TileType, target: TensorType) -> bool:
    """Return whether a store converts: a matrix product may leave its accumulator as a smaller float."""
    return source.memory is MemorySpace.Acc and source.dtype.is_float() and target.dtype.is_float()


def _partition(source: TileType, shapes: Sequence[Expr], rank: int) -> tuple[int, ...]:
    """Return the shape a store gives the tile's elements, which must be all of them."""
    check_rank(shapes, rank, "shapes", "tensor")
    shape = tile_shape(shapes, "shapes")
    if prod(shape) != prod(source.shape) or source.valid != source.shape:
        needed = f"`shapes` {show_shape(shape)} must hold every element"
        raise ShapeMismatchError(f"{needed} of a wholly valid tile, got {source}", blame=["tile", "shapes"])
    return shape


def _store(
    result: TensorType,
    tile: Region,
    offsets: tuple[int, ...],
    output_tensor: Region,
    shapes: tuple[int, ...] | None,
    atomic: AtomicType,
    mask: Region | None,
) -> Region:
    if mask is not None:
        return write_masked(output_tensor, tile, offsets, mask)
    source = tile if shapes is None else whole(np.reshape(tile.seen(), shapes))
    return write_window(output_tensor, source, offsets, atomic)


def write_window(target: Region, source: Region, offsets: Sequence[int], atomic: AtomicType) -> Region:
    """Write the valid part of `source` into `target`'s buffer and return `target`."""
    valid = (1,) * (target.data.ndim - source.data.ndim) + source.valid
    for axis, (start, size, extent) in enumerate(zip(offsets, valid, target.data.shape, strict=True)):
        if start < 0 or start + size > extent:
            message = f"axis {axis}: a store of {size} element(s) at {start} does not fit 0 to {extent}"
            raise ExecutionError(message, help=NARROW)
    window = tuple(slice(start, start + size) for start, size in zip(offsets, valid, strict=True))
    live = np.reshape(source.seen(), valid)
    touch(Access.ADD if atomic is AtomicType.Add else Access.WRITE, target.data[window])
    if atomic is AtomicType.Add:
        _add(target.seen(window), live, target.dtype)
    else:
        target.data[window] = round_to(live, target.dtype)
    target.brighten(window)
    return target


def _add(into: Any, live: Any, dtype: DataType) -> None:
    """Add elements to what is there, one after the other where several of them go to one place."""
    places: Any = np.ndindex(into.shape) if overlaps_itself(into.shape, into.strides, into.itemsize) else [()]
    with np.errstate(all="ignore"):
        for index in places:
            place = (*index, ...)
            into[place] = round_to(exact(into[place]) + exact(live[place]), dtype)


def created_type(
    shape: tuple[Expr, ...], dtype: DataType, value: Expr | None = None, init_value: float | int | None = None, **_: Any
) -> TensorType:
    check_number(value if value is not None else init_value, dtype)
    extents = as_shape(shape)
    if any(isinstance(extent, int) and extent < 0 for extent in extents):
        raise ShapeMismatchError(f"extents must not be negative, got {show_shape(extents)}", blame=["shape"])
    return tensor(extents, dtype)


def _create_tensor(
    result: TensorType, shape: tuple[int, ...], dtype: DataType, init_value: Any = None, **_: Any
) -> Region:
    check_extents(shape)
    return unwritten(shape, dtype) if init_value is None else whole(filled(shape, dtype, init_value))


def check_number(value: Expr | float | None, dtype: DataType) -> None:
    """Raise unless new elements can be a number: one of the program by its type, one that is known by its value."""
    if isinstance(value, (bool, int, float)):
        try:
            constant(value, dtype)
        except OperandError as error:
            error.blame = ("init_value",)
            raise
    elif value is not None and dtype_of(value).is_float() and not dtype.is_float():
        given = dtype_of(value)
        help = f"convert: pl.cast(value, pl.{dtype.symbol})"
        raise DTypeMismatchError(f"{given} cannot be written into {dtype} elements", blame=["value"], help=help)


MOST = 1 << 40
"""No tensor has more elements: a program that asks for more has computed nonsense."""
EXTENTS = "extents are zero or more, and their product is what memory can hold"


def check_extents(shape: Sequence[int]) -> None:
    if any(extent < 0 for extent in shape) or prod(shape) > MOST:
        raise ExecutionError(f"no tensor can have these extents: {list(shape)}", help=EXTENTS)


def filled(shape: Sequence[int], dtype: DataType, value: Any) -> Any:
    """Return storage all of whose elements are a number."""
    return round_to(np.full(tuple(shape), round_scalar(value, dtype)), dtype)


def _created_tile(
    shape: tuple[Expr, ...],
    dtype: DataType,
    target_memory: MemorySpace = MemorySpace.Vec,
    value: Expr | None = None,
    **_: Any,
) -> TileType:
    check_number(value, dtype)
    return tile(tile_shape(shape, "shape"), dtype, memory=target_memory)


def _create_tile(result: TileType, **_: Any) -> Region:
    return unwritten(result.shape, result.dtype)


def _moved(tile: Expr, target_memory: MemorySpace, **_: Any) -> TileType:
    return TileType(static_shape(shaped(tile).shape), shaped(tile).dtype, shaped(tile).valid, target_memory)


def _unmoved(result: TileType, tile: Region, **_: Any) -> Region:
    return tile


def _indexed(x: Expr, indices: tuple[Expr, ...]) -> ShapedType:
    type_ = shaped(x)
    check_rank(indices, len(type_.shape), "indices", "value")
    for axis, (index, extent) in enumerate(zip(indices, type_.shape, strict=True)):
        if fits(index, 1, extent) is False:
            raise OutOfBoundsError(f"axis {axis}: index {index} lies outside 0 to {extent}", blame=["indices"])
    return type_


def _element(x: Region, indices: tuple[int, ...]) -> tuple[int, ...]:
    for axis, (index, extent) in enumerate(zip(indices, x.data.shape, strict=True)):
        if not 0 <= index < extent:
            raise ExecutionError(f"axis {axis}: index {index} lies outside 0 to {extent}")
    return indices


def _read_type(x: Expr, indices: tuple[Expr, ...]) -> ScalarType:
    return ScalarType(_indexed(x, indices).dtype)


def _read(result: ScalarType, x: Region, indices: tuple[int, ...]) -> Any:
    index = _element(x, indices)
    touch(Access.READ, x.data[(*index, None)])
    return round_scalar(x.seen(index).item(), result.dtype)


def _write_type(x: Expr, indices: tuple[Expr, ...], value: Expr) -> ShapedType:
    type_ = _indexed(x, indices)
    assert isinstance(value.type, ScalarType)
    given, held = value.type.dtype, type_.dtype
    if (given.is_float(), given.is_int()) != (held.is_float(), held.is_int()):
        raise DTypeMismatchError(
            f"{given} cannot be written into {held} elements",
            blame=["value"],
            help=f"convert: pl.cast(value, pl.{held.symbol})",
        )
    return type_


def _write(result: ShapedType, x: Region, indices: tuple[int, ...], value: Any) -> Region:
    target = x if isinstance(result, TensorType) else x.moved(np.array, x.valid)
    index = _element(x, indices)
    touch(Access.WRITE, target.data[(*index, None)])
    target.data[index] = round_scalar(value, result.dtype)
    target.brighten(index)
    return target


def _dim_type(tensor: Expr, axis: int, valid: bool) -> ScalarType:
    rank = len(shaped(tensor).shape)
    if not -rank <= axis < rank:
        raise OutOfBoundsError(f"axis {axis} of a {rank}-D tensor does not exist", blame=["tensor"])
    return ScalarType(INDEX)


def _dim(result: ScalarType, tensor: Region, axis: int, valid: bool) -> int:
    return tensor.valid[axis] if valid else tensor.data.shape[axis]


def _known_dim(tensor: Expr, axis: int, valid: bool) -> Expr | None:
    extent = (shaped(tensor).valid if valid else shaped(tensor).shape)[axis]
    return None if extent is None else as_scalar(extent)


@called("triton")
@op(
    kinds=TILE, infer=_store_type, evaluate=_store, effect=Effect.WRITE, alias="output_tensor", writes="output_tensor",
    accepts=ANY, hints={"mask": MASKS}, example="out = pl.store(a, [0, 0], out)",
)  # fmt: skip
def store(
    tile: Tile,
    offsets: Extents,
    output_tensor: Tensor,
    shapes: Extents | None = None,
    atomic: AtomicType = AtomicType.None_,
    mask: Tile | None = None,
) -> Tensor:
    """Write the valid part of `tile` into `output_tensor` at `offsets`; return the tensor.

    `shapes` gives the elements another shape on the way, one extent per axis of the tensor. With a `mask`, bools that
    broadcast to the tile, only elements where it is True are written; the others may lie outside the tensor.
    """
    ...


@op(
    kinds=TILE, infer=_moved, evaluate=_unmoved, accepts=ANY, undefined=Undefined.MOVES,
    example="out = pl.store(pl.move(a, target_memory=pl.Mem.Left), [0, 0], out)",
)  # fmt: skip
def move(
    tile: Tile, target_memory: MemorySpace, blayout: TileLayout | None = None, slayout: TileLayout | None = None
) -> Tile:
    """Return the tile in another memory space; its elements stay what they are."""
    ...


@called(numpy="empty", torch="empty")
@op(
    kinds=TENSOR, name="create", infer=created_type, evaluate=_create_tensor, effect=Effect.ALLOCATE, accepts=ANY,
    control_plane=True,
    example="fresh = pl.create_tensor([16, 32], dtype=pl.FP32)\nfresh = pl.store(a, [0, 0], fresh)\n"
    "out = pl.store(pl.load(fresh, [0, 0], [16, 32]), [0, 0], out)",
)  # fmt: skip
def create_tensor(
    shape: Extents,
    dtype: DataType,
    layout: TensorLayout = TensorLayout.ND,
    manual_dep: bool = False,
    init_value: float | int | None = None,
) -> Tensor:
    """Return a new buffer, its elements unspecified unless `init_value` is given."""
    ...


@op(
    kinds=TILE, name="create", infer=_created_tile, evaluate=_create_tile, accepts=ANY,
    example="scratch = pl.create_tile([16, 32], dtype=pl.FP32)\nsums = pl.row_sum(a, scratch)\n"
    "out = pl.store(pl.row_expand(a, sums), [0, 0], out)",
)  # fmt: skip
def create_tile(
    shape: Extents,
    dtype: DataType,
    target_memory: MemorySpace = MemorySpace.Vec,
    transpose: bool | None = None,
    flat_layout: bool | None = None,
) -> Tile:
    """Return a new tile, its elements unspecified."""
    ...


@called(numpy="ndarray.item", torch="Tensor.item")
@op(
    kinds=UNIFIED, infer=_read_type, evaluate=_read, effect=Effect.READ, control_plane=True, accepts=ANY,
    example="first = pl.read(x, [0, 0])\nout = pl.store(pl.add(a, first), [0, 0], out)",
)  # fmt: skip
def read(x: X, indices: Extents) -> Scalar:
    """Return one element as a scalar."""
    ...


@op(
    kinds=UNIFIED, infer=_write_type, evaluate=_write, effect=Effect.WRITE, alias="x", writes="x", control_plane=True,
    accepts=ANY, undefined=Undefined.MOVES, example="pl.write(out, [0, 0], 1.0)",
)  # fmt: skip
def write(x: X, indices: Extents, value: Number) -> X:
    """Set one element; return the tensor or tile."""
    ...


@called(torch="Tensor.size")
@op(
    kinds=TENSOR, infer=_dim_type, fold=_known_dim, evaluate=_dim, control_plane=True, accepts=ANY,
    example="rows = pl.tensor.dim(x, 0)\nout = pl.store(pl.add(a, pl.cast(rows, pl.FP32)), [0, 0], out)",
)  # fmt: skip
def dim(tensor: Tensor, axis: int, valid: bool = False) -> Scalar:
    """Return the extent of one axis, or of what is `valid` of it."""
    ...
