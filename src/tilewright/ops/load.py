"""Loads: tiles out of tensors.

A load is cut to what the tensor holds: where it cannot be shown to fit, the tile's valid extent is whatever was there.
With padding all of the tile is valid, and a number stands for what is not there.
"""

import math
from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access, touch, touch_each
from tilewright.core.annotations import Extents, Tensor, Tile
from tilewright.core.enums import MemorySpace, PadValue, TensorLayout
from tilewright.core.expr import Expr
from tilewright.core.extents import as_extent, bounds, fits
from tilewright.core.foreign_names import called
from tilewright.core.op import Effect, Undefined
from tilewright.core.region import Array, Region, blank, shaded, whole
from tilewright.core.types import Extent, TensorType, TileType
from tilewright.dtypes import FP8E8M0, DataType, objection
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, ShapeMismatchError
from tilewright.ops.declare import ANY, TILE, op
from tilewright.ops.families import shaped
from tilewright.ops.masked import MASKS, check_alone, check_mask, places_of
from tilewright.ops.memory import filled
from tilewright.ops.windows import CLAMP, check_part, check_rank, outside, starts_inside, tile_shape, valid_extents

__all__ = ["load"]


def _load_type(
    tensor: Expr,
    offsets: tuple[Expr, ...],
    shapes: tuple[Expr, ...],
    valid_shape: tuple[Expr, ...] | None,
    target_memory: MemorySpace,
    clamp: bool,
    pad: PadValue | float | None,
    mask: Expr | None,
) -> TileType:
    source = shaped(tensor)
    rank = len(source.shape)
    check_rank(offsets, rank, "offsets", "tensor")
    check_rank(shapes, rank, "shapes", "tensor")
    shape = tile_shape(shapes, "shapes")
    assert isinstance(source, TensorType)
    if source.layout.is_permuted:
        _check_permuted(source, target_memory, pad if mask is None else 0)
    if valid_shape is not None:
        check_rank(valid_shape, rank, "valid_shape", "tensor")
    wanted = valid_extents(shape, valid_shape)
    if mask is not None:
        check_mask(shaped(mask), shape)
        check_alone({"valid_shape": valid_shape}, "load")
    if pad is not None or mask is not None:
        padding(0 if pad is None else pad, source.dtype)
        return TileType(shape, source.dtype, shape, target_memory)
    valid = tuple(
        _loaded(axis, offset, want, have, clamp)
        for axis, (offset, want, have) in enumerate(zip(offsets, wanted, source.valid, strict=True))
    )
    return TileType(shape, source.dtype, valid, target_memory)


def _check_permuted(source: TensorType, memory: MemorySpace, pad: PadValue | float | None) -> None:
    """Raise unless exponents can be put in order while they are loaded."""
    order = source.layout.value
    if source.dtype != FP8E8M0 or len(source.shape) != 2:
        raise DTypeMismatchError(f"{order} is the order of fp8e8m0 matrices, got {source}", blame=["tensor"])
    rows, columns = source.shape if source.layout is TensorLayout.MX_A_ZZ else source.shape[::-1]
    if not (isinstance(rows, int) and isinstance(columns, int)) or rows % 16 or columns % 2:
        raise ShapeMismatchError(f"{order} takes 16 by 2 exponents together, got {source}", blame=["tensor"])
    if memory is not MemorySpace.Mat or pad is not None:
        help = "pl.load(x, offsets, shapes, target_memory=pl.Mem.Mat)"
        raise AttributeValueError(f"{order} is put in order on its way to pl.Mem.Mat, without padding", help=help)


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


def padding(pad: object, dtype: DataType) -> float:
    """Return the number that stands for what is not there; AttributeValueError where `dtype` has none such."""
    low, high = dtype.limits
    if pad in (PadValue.zero, PadValue.max, PadValue.min):
        return {PadValue.zero: 0, PadValue.max: high, PadValue.min: low}[PadValue(pad)]
    if isinstance(pad, float) and math.isinf(pad):
        return high if pad > 0 else low
    if not isinstance(pad, (int, float)) or objection(pad, dtype):
        raise AttributeValueError(
            f"{dtype} elements cannot be padded with {pad if isinstance(pad, float) else repr(pad)[:40]}",
            help="pad with a number that they can have, pl.PadValue.zero, max or min, math.inf or -math.inf",
        )
    return pad


def _load(
    result: TileType,
    tensor: Region,
    offsets: tuple[int, ...],
    shapes: tuple[int, ...],
    valid_shape: tuple[int, ...] | None,
    target_memory: MemorySpace,
    clamp: bool,
    pad: PadValue | float | None,
    mask: Region | None,
) -> Region:
    if mask is not None:
        return _masked(result, tensor, offsets, mask, padding(0 if pad is None else pad, result.dtype))
    if tensor.layout.is_permuted:
        touch(Access.READ, tensor.data)
        tensor = tensor.moved(lambda array: in_order(array, tensor.layout), tensor.valid)
    if pad is not None:
        return _padded(result, tensor, offsets, valid_shape or shapes, padding(pad, result.dtype))
    check_part(valid_shape or shapes, shapes)
    window: list[slice[int, int, None]] = []
    for axis, (start, want, have) in enumerate(zip(offsets, valid_shape or shapes, tensor.valid, strict=True)):
        is_past = start > have or (start == have > 0 and want > 0)  # at zero even an axis without elements begins
        if start < 0 or (is_past and not clamp):
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
    check_part(wanted, result.shape)
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
    return _put(result, tensor, window, place, pad)


def _masked(result: TileType, tensor: Region, offsets: tuple[int, ...], mask: Region, pad: float) -> Region:
    """Return what a tensor holds from `offsets` on where a mask is True, and `pad` elsewhere."""
    own = np.nonzero(np.broadcast_to(mask.seen(), result.shape))
    places = places_of(own, offsets, tensor.valid)
    touch_each(Access.READ, tensor.data, places)
    return _put(result, tensor, places, own, pad)


def _put(result: TileType, tensor: Region, places: Any, own: Any, pad: float) -> Region:
    """Return a tile of `pad` that holds at its `own` places what a tensor holds at others."""
    tile = whole(filled(result.shape, result.dtype, pad))
    tile.data[own] = tensor.data[places]
    if tensor.shadow is None or not tensor.shadow[places].any():
        return tile
    shadow = np.zeros(result.shape, np.uint8)
    shadow[own] = tensor.shadow[places]
    return Region(tile.data, tile.valid, shadow, tensor.origin)


@called("triton")
@op(
    kinds=TILE, infer=_load_type, evaluate=_load, effect=Effect.READ, accepts=ANY, undefined=Undefined.MOVES,
    takes_permuted=True, also={"pad": ("other",)}, hints={"mask": MASKS},
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
    mask: Tile | None = None,
) -> Tile:
    """Return a tile with the elements of `tensor` from `offsets` on, as many as are there.

    `valid_shape` asks for less than the tile's whole shape. A load that starts outside the tensor, or provably ends
    outside it, is an error unless `clamp`. With `pad` all of the tile is valid, and holds that number where the tensor
    has no element: after its end, before its beginning, and outside `valid_shape`. Exponents of a scaled product, in
    tensors laid out as `pl.MX_A_ZZ` or `pl.MX_B_NN`, are put in order.

    With a `mask`, bools that broadcast to the tile, only elements where it is True are read, and have to be there; the
    others are `pad`, or zero, wherever they lie.
    """
    ...


def in_order(data: Array, layout: TensorLayout) -> Array:
    """Return exponents in the order of their rows and columns, from that of memory."""
    rows, columns = data.shape
    if layout is TensorLayout.MX_A_ZZ:
        return np.reshape(np.transpose(np.reshape(data, (rows // 16, columns // 2, 16, 2)), (0, 2, 1, 3)), data.shape)
    return np.reshape(np.transpose(np.reshape(data, (columns // 16, rows // 2, 16, 2)), (1, 3, 0, 2)), data.shape)
