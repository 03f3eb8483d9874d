"""Memory: tiles in and out of tensors, fresh storage, single elements.

A load is cut to what the tensor holds: where it cannot be shown to fit, the tile's valid extent is whatever was
there. A store never drops data: what does not fit is refused, before the program runs where that can be shown.
"""

import math
from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access, touch
from tilewright.core.annotations import Extents, Number, Scalar, Tensor, Tile, X
from tilewright.core.enums import AtomicType, MemorySpace, PadValue, TensorLayout, TileLayout
from tilewright.core.expr import Expr, constant
from tilewright.core.extents import as_extent, as_scalar, as_shape, bounds, fits
from tilewright.core.op import Effect, Undefined
from tilewright.core.region import Region, blank, exact, shaded, unwritten, whole
from tilewright.core.types import (
    Extent,
    ScalarType,
    Shape,
    ShapedType,
    TensorType,
    TileType,
    is_static,
    show_shape,
    static_shape,
    tensor,
    tile,
)
from tilewright.dtypes import BF16, FP16, FP32, INDEX, INT8, INT16, INT32, DataType, objection, round_scalar, round_to
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    ExecutionError,
    NotStaticError,
    OperandError,
    OutOfBoundsError,
    ShapeMismatchError,
)
from tilewright.ops.declare import ANY, TENSOR, TILE, UNIFIED, op
from tilewright.ops.families import shaped

__all__ = ["create_tensor", "create_tile", "dim", "full", "load", "move", "read", "store", "tile_full", "write"]

ATOMIC = frozenset((FP32, BF16, FP16, INT32, INT16, INT8))


def tile_shape(shapes: Sequence[Expr], blame: str) -> tuple[int, ...]:
    """Return the extents of a tile, which must be static and positive."""
    shape = as_shape(shapes)
    if not is_static(shape):
        raise NotStaticError(
            f"a tile's shape must be static, got {show_shape(shape)}",
            blame=[blame],
            help="give the tile a fixed shape and say how much of it holds data with valid_shape",
        )
    if any(extent <= 0 for extent in static_shape(shape)):
        raise ShapeMismatchError(f"extents must be positive, got {show_shape(shape)}", blame=[blame])
    return static_shape(shape)


def check_rank(given: Sequence[object], rank: int, blame: str, of: str) -> None:
    """Raise unless there is one entry per axis."""
    if len(given) != rank:
        message = f"`{blame}` needs one entry per axis of the {rank}-D {of}, got {len(given)}"
        raise ShapeMismatchError(message, blame=[blame], help=_other_rank(len(given), rank, of))


def _other_rank(given: int, rank: int, of: str) -> str:
    """Return what to write where there are too few or too many entries; a subscript takes leading axes away."""
    if not 0 < given < rank or of != "tensor":
        return f"write {rank}, one for each axis"
    letters = ", ".join("bhijklmn"[: rank - given]) if rank - given <= 8 else "..."
    return f"x[{letters}] is the {given}-D part at these indices: give that instead of x, or write {rank} entries"


def _load_type(
    tensor: Expr,
    offsets: tuple[Expr, ...],
    shapes: tuple[Expr, ...],
    valid_shape: tuple[Expr, ...] | None,
    target_memory: MemorySpace,
    clamp: bool,
    pad: PadValue | float | None,
) -> TileType:
    source = shaped(tensor)
    rank = len(source.shape)
    check_rank(offsets, rank, "offsets", "tensor")
    check_rank(shapes, rank, "shapes", "tensor")
    shape = tile_shape(shapes, "shapes")
    if valid_shape is not None:
        check_rank(valid_shape, rank, "valid_shape", "tensor")
    wanted = valid_extents(shape, valid_shape)
    if pad is not None:
        padding(pad, source.dtype)
        return TileType(shape, source.dtype, shape, target_memory)
    valid = tuple(
        _loaded(axis, offset, want, have, clamp)
        for axis, (offset, want, have) in enumerate(zip(offsets, wanted, source.valid, strict=True))
    )
    return TileType(shape, source.dtype, valid, target_memory)


def valid_extents(shape: Shape, valid_shape: Sequence[Expr] | None) -> Shape:
    """Return the asked valid part of a shape; what only the running program knows is None."""
    if valid_shape is None:
        return shape
    valid = tuple(extent if isinstance(extent := as_extent(v), int) else None for v in valid_shape)
    for have, want in zip(shape, valid, strict=True):
        if isinstance(want, int) and (want < 0 or (isinstance(have, int) and want > have)):
            raise ShapeMismatchError(
                f"a valid part of {show_shape(valid)} does not fit {show_shape(shape)}", blame=["valid_shape"]
            )
    return valid


def _loaded(axis: int, offset: Expr, want: Extent, have: Extent, clamp: bool) -> Extent:
    """Return how much a load finds along one axis, where that is known."""
    fit = fits(offset, want, have)
    if fit:
        return want
    if (fit is False or _starts_past(offset, have)) and not (clamp and starts_inside(offset)):
        raise outside(axis, offset, want, have, "offsets", CLAMP)
    start = as_extent(offset)
    if isinstance(start, int) and isinstance(want, int) and isinstance(have, int):
        return max(0, min(want, have - start))
    return None


def _starts_past(offset: Expr, have: Extent) -> bool:
    """Return whether a load certainly starts where a tensor has ended; at zero even an empty one begins."""
    reach = bounds(offset)
    return reach is not None and isinstance(have, int) and reach[0] > 0 and reach[0] >= have


def padding(pad: PadValue | float, dtype: DataType) -> float:
    """Return the number that stands for what is not there; AttributeValueError where `dtype` has none such."""
    low, high = dtype.limits
    if pad in (PadValue.zero, PadValue.max, PadValue.min):
        return {PadValue.zero: 0, PadValue.max: high, PadValue.min: low}[PadValue(pad)]
    if isinstance(pad, float) and dtype.is_int() and math.isinf(pad):
        return high if pad > 0 else low
    if not isinstance(pad, (int, float)) or objection(pad, dtype):
        raise AttributeValueError(
            f"{dtype} elements cannot be padded with {pad if isinstance(pad, float) else repr(pad)[:40]}",
            help="pad with a number that they can have, pl.PadValue.zero, max or min, math.inf or -math.inf",
        )
    return pad


BEFORE = "start at 0 or after it: pl.max(i, 0) keeps an offset there"
CLAMP = "make the region smaller; pl.load and pl.slice with clamp=True read only what is there"
NARROW = "the valid part of a tile is stored: a load knows its own, and pl.set_validshape narrows that of other tiles"
CUT = "pl.load is cut to what the tensor holds, and so is pl.slice with clamp=True"


def starts_inside(offset: Expr) -> bool:
    """Return whether an offset may be zero or more."""
    reach = bounds(offset)
    return reach is None or reach[1] >= 0


def outside(axis: int, offset: Expr, size: Extent, extent: Extent, blame: str, help: str = "") -> OutOfBoundsError:
    """Return the error for a region that cannot lie inside its tensor."""
    reach = bounds(offset)
    if help and reach is not None and reach[1] < 0:
        help = BEFORE
    low, high = (
        (str(reach[0]), str(reach[1] + size)) if reach and isinstance(size, int) else (offset, f"{offset} + {size}")
    )
    return OutOfBoundsError(
        f"axis {axis}: elements {low} to {high} lie outside 0 to {extent}", blame=[blame], help=help
    )


def _load(
    result: TileType,
    tensor: Region,
    offsets: tuple[int, ...],
    shapes: tuple[int, ...],
    valid_shape: tuple[int, ...] | None,
    target_memory: MemorySpace,
    clamp: bool,
    pad: PadValue | float | None,
) -> Region:
    if pad is not None:
        return _padded(result, tensor, offsets, valid_shape or shapes, padding(pad, result.dtype))
    window: list[slice[int, int, None]] = []
    for axis, (start, want, have) in enumerate(zip(offsets, valid_shape or shapes, tensor.valid, strict=True)):
        is_past = start > have or (start == have > 0 and want > 0)  # at zero even an axis without elements begins
        if start < 0 or (is_past and not clamp) or want < 0 or want > shapes[axis]:
            raise ExecutionError(f"axis {axis}: a load of {want} element(s) at {start} starts outside 0 to {have}")
        window.append(slice(start, max(start, min(start + want, have))))
    live = tensor.data[tuple(window)]
    touch(Access.READ, live)
    data = blank(shapes, result.dtype)
    loaded = Region(data, live.shape)
    data[loaded.window] = live
    return shaded(loaded.forgotten(), [tensor.shade(tuple(window))], tensor.origin)


def _padded(result: TileType, tensor: Region, offsets: tuple[int, ...], wanted: tuple[int, ...], pad: float) -> Region:
    """Return what a tensor holds from `offsets` on, which may lie outside it, and `pad` where it holds nothing."""
    _check_asked(result.shape, wanted)
    tile = whole(_filled(result.shape, result.dtype, pad))
    first = [min(max(start, 0), have) for start, have in zip(offsets, tensor.valid, strict=True)]
    last = [
        max(low, min(start + want, have))
        for low, start, want, have in zip(first, offsets, wanted, tensor.valid, strict=True)
    ]
    window = tuple(slice(low, high) for low, high in zip(first, last, strict=True))
    spans = zip(first, last, offsets, strict=True)
    place = tuple(slice(low - start, high - start) if high > low else slice(0, 0) for low, high, start in spans)
    if all(high > low for low, high in zip(first, last, strict=True)):
        touch(Access.READ, tensor.data[window])
        tile.data[place] = tensor.data[window]
    if tensor.shadow is None or not tensor.shadow[window].any():
        return tile
    shadow = np.zeros(result.shape, np.uint8)
    shadow[place] = tensor.shadow[window]
    return Region(tile.data, tile.valid, shadow, tensor.origin)


def _check_asked(shape: Sequence[int], wanted: Sequence[int]) -> None:
    if any(not 0 <= want <= extent for want, extent in zip(wanted, shape, strict=True)):
        raise ExecutionError(f"a valid part of {list(wanted)} does not fit {list(shape)}")


def _store_type(
    tile: Expr, offsets: tuple[Expr, ...], output_tensor: Expr, shapes: tuple[Expr, ...] | None, atomic: AtomicType
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
        raise DTypeMismatchError(f"atomic add does not take {target.dtype} elements", blame=["output_tensor"])
    valid = (1,) * (rank - len(source.shape)) + source.valid
    if shapes is not None:
        valid = _partition(source, shapes, rank)
    for axis, (offset, size, extent) in enumerate(zip(offsets, valid, target.shape, strict=True)):
        if fits(offset, size, extent) is False:
            raise outside(axis, offset, size, extent, "offsets")
    return target


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
) -> Region:
    source = tile if shapes is None else whole(np.reshape(tile.seen(), shapes))
    return write_window(output_tensor, source, offsets, atomic)


def write_window(target: Region, source: Region, offsets: Sequence[int], atomic: AtomicType) -> Region:
    """Write the valid part of `source` into `target`'s buffer and return `target`."""
    valid = (1,) * (target.data.ndim - source.data.ndim) + source.valid
    for axis, (start, size, extent) in enumerate(zip(offsets, valid, target.data.shape, strict=True)):
        if start < 0 or start + size > extent:
            raise ExecutionError(f"axis {axis}: a store of {size} element(s) at {start} does not fit 0 to {extent}")
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
    places: Any = np.ndindex(into.shape) if _overlaps_itself(into) else [()]
    for index in places:
        place = (*index, ...)
        into[place] = round_to(exact(into[place]) + exact(live[place]), dtype)


def _overlaps_itself(view: Any) -> bool:
    """Return whether elements of a view may share memory: one axis steps into what the smaller ones cover."""
    covered = view.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(view.strides, view.shape, strict=True) if n > 1):
        if stride < covered:
            return True
        covered += stride * (extent - 1)
    return False


def _created(
    shape: tuple[Expr, ...],
    dtype: DataType,
    value: Expr | None = None,
    init_value: float | int | None = None,
    **_: Any,
) -> TensorType:
    check_number(value if value is not None else init_value, dtype)
    extents = as_shape(shape)
    if any(isinstance(extent, int) and extent < 0 for extent in extents):
        raise ShapeMismatchError(f"extents must not be negative, got {show_shape(extents)}", blame=["shape"])
    return tensor(extents, dtype)


def _create_tensor(
    result: TensorType, shape: tuple[int, ...], dtype: DataType, init_value: Any = None, **_: Any
) -> Region:
    _check_extents(shape)
    return unwritten(shape, dtype) if init_value is None else whole(_filled(shape, dtype, init_value))


def check_number(value: Expr | float | None, dtype: DataType) -> None:
    """Raise unless new elements can be a number: one of the program by its type, one that is known by its value."""
    if isinstance(value, (bool, int, float)):
        try:
            constant(value, dtype)
        except OperandError as error:
            error.blame = ("init_value",)
            raise
    elif value is not None and element_of(value).is_float() and not dtype.is_float():
        given = element_of(value)
        help = f"convert: pl.cast(value, pl.{dtype.symbol})"
        raise DTypeMismatchError(f"{given} cannot be written into {dtype} elements", blame=["value"], help=help)


def element_of(value: Expr) -> DataType:
    """Return the type of a scalar operand."""
    assert isinstance(value.type, ScalarType)
    return value.type.dtype


MOST = 1 << 40
"""No tensor has more elements: a program that asks for more has computed nonsense."""
EXTENTS = "extents are zero or more, and their product is what memory can hold"


def _check_extents(shape: Sequence[int]) -> None:
    if any(extent < 0 for extent in shape) or prod(shape) > MOST:
        raise ExecutionError(f"no tensor can have these extents: {list(shape)}", help=EXTENTS)


def _filled(shape: Sequence[int], dtype: DataType, value: Any) -> Any:
    return round_to(np.full(tuple(shape), round_scalar(value, dtype)), dtype)


def _full(result: ShapedType, shape: tuple[int, ...], dtype: DataType, value: Any) -> Region:
    _check_extents(shape)
    data = _filled(shape, dtype, value)
    return Region(data, data.shape, is_made=True)


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


def _dim_type(tensor: Expr, axis: int) -> ScalarType:
    rank = len(shaped(tensor).shape)
    if not -rank <= axis < rank:
        raise OutOfBoundsError(f"axis {axis} of a {rank}-D tensor does not exist", blame=["tensor"])
    return ScalarType(INDEX)


def _dim(result: ScalarType, tensor: Region, axis: int) -> int:
    return tensor.data.shape[axis]


def _known_dim(tensor: Expr, axis: int) -> Expr | None:
    extent = shaped(tensor).shape[axis]
    return None if extent is None else as_scalar(extent)


@op(
    kinds=TILE, infer=_load_type, evaluate=_load, effect=Effect.READ, accepts=ANY, undefined=Undefined.MOVES,
    example="t = pl.load(x, [8, 0], [8, 32])\nout = pl.store(t, [0, 0], out)",
)  # fmt: skip
def load(
    tensor: Tensor,
    offsets: Extents,
    shapes: Extents,
    valid_shape: Extents | None = None,
    target_memory: MemorySpace = MemorySpace.Vec,
    clamp: bool = False,
    pad: PadValue | float | None = None,
) -> Tile:
    """Return a tile with the elements of `tensor` from `offsets` on, as many as are there.

    `valid_shape` asks for less than the tile's whole shape. A load that starts outside the tensor, or provably ends
    outside it, is an error unless `clamp`. With `pad` all of the tile is valid, and holds that number where the tensor
    has no element: after its end, before its beginning, and outside `valid_shape`.
    """
    ...


@op(
    kinds=TILE, infer=_store_type, evaluate=_store, effect=Effect.WRITE, alias="output_tensor", writes="output_tensor",
    accepts=ANY, example="out = pl.store(a, [0, 0], out)",
)  # fmt: skip
def store(
    tile: Tile,
    offsets: Extents,
    output_tensor: Tensor,
    shapes: Extents | None = None,
    atomic: AtomicType = AtomicType.None_,
) -> Tensor:
    """Write the valid part of `tile` into `output_tensor` at `offsets`; return the tensor.

    `shapes` gives the elements another shape on the way, one extent per axis of the tensor.
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


@op(
    kinds=TENSOR, name="create", infer=_created, evaluate=_create_tensor, effect=Effect.ALLOCATE, control_plane=True,
    accepts=ANY,
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


@op(
    kinds=TENSOR, infer=_created, evaluate=_full, effect=Effect.ALLOCATE, accepts=ANY,
    example="ones = pl.full([16, 32], dtype=pl.FP32, value=1.0)\n"
    "out = pl.store(pl.load(ones, [0, 0], [16, 32]), [0, 0], out)",
)  # fmt: skip
def full(shape: Extents, dtype: DataType, value: Number) -> Tensor:
    """Return a new buffer all of whose elements are `value`."""
    ...


@op(
    kinds=TILE, name="full", infer=_created_tile, evaluate=_full, accepts=ANY,
    example="out = pl.store(pl.tile.full([16, 32], dtype=pl.FP32, value=1.0), [0, 0], out)",
)  # fmt: skip
def tile_full(shape: Extents, dtype: DataType, value: Number) -> Tile:
    """Return a tile all of whose elements are `value`."""
    ...


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


@op(
    kinds=TENSOR, infer=_dim_type, fold=_known_dim, evaluate=_dim, control_plane=True, accepts=ANY,
    example="rows = pl.tensor.dim(x, 0)\nout = pl.store(pl.add(a, pl.cast(rows, pl.FP32)), [0, 0], out)",
)  # fmt: skip
def dim(tensor: Tensor, axis: int) -> Scalar:
    """Return the extent of one axis."""
    ...
