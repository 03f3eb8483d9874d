"""Gathering rows: windows of a tensor put side by side in an accumulator, and rows found through a block table."""

from typing import Any

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.access import Access, touch, touch_each
from tilewright.core.annotations import Extents, Index, Tensor, X
from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Expr
from tilewright.core.extents import bounds, fits
from tilewright.core.op import Effect, Undefined
from tilewright.core.region import Region, unwritten
from tilewright.core.types import Extent, ShapedType, TensorType, tensor
from tilewright.dtypes import INT32, DataType
from tilewright.errors import AttributeValueError, ExecutionError, OutOfBoundsError, ShapeMismatchError
from tilewright.ops.declare import ANY, TENSOR, UNIFIED, op
from tilewright.ops.families import check_dtype, shaped
from tilewright.ops.indices import check_elements, check_index, check_rank, check_whole, inside
from tilewright.ops.windows import check_part, outside, tile_shape, valid_extents
from tilewright.ops.windows import check_rank as check_entries

__all__ = ["create_l1", "gather_row", "paged_gather"]

PAGED = frozenset((dt.FP16, dt.BF16, dt.FP32, dt.INT8))


def _holder_type(shape: tuple[Expr, ...], dtype: DataType, transpose: bool) -> TensorType:
    return tensor(tile_shape(shape, "shape"), dtype)


def _holder(result: TensorType, shape: tuple[int, ...], dtype: DataType, transpose: bool) -> Region:
    return unwritten(shape, dtype)


def _row_type(
    dst: Expr,
    src: Expr,
    dst_offset: tuple[Expr, ...],
    src_offset: tuple[Expr, ...],
    shapes: tuple[Expr, ...],
    transpose: bool,
    valid_shape: tuple[Expr, ...] | None,
) -> ShapedType:
    target, source = check_whole(dst, "dst"), check_whole(src, "src")
    check_elements(source, target, "src", "dst")
    for type_, name in ((target, "dst"), (source, "src")):
        check_rank(type_, 2, name)
    for entries, name in ((dst_offset, "dst_offset"), (src_offset, "src_offset"), (shapes, "shapes")):
        check_entries(entries, 2, name, "tensor")
    if transpose and valid_shape is not None:
        help = "give shapes the size that is copied"
        raise AttributeValueError("valid_shape cannot be given with transpose=True", blame=["valid_shape"], help=help)
    if valid_shape is not None:
        check_entries(valid_shape, 2, "valid_shape", "tensor")
    size = valid_extents(tile_shape(shapes, "shapes"), valid_shape)
    for name, starts, extents, have in (
        ("src_offset", src_offset, size, source.shape),
        ("dst_offset", dst_offset, size[::-1] if transpose else size, target.shape),
    ):
        for axis, (start, n, extent) in enumerate(zip(starts, extents, have, strict=True)):
            if fits(start, n, extent) is False:
                raise outside(axis, start, n, extent, name, FIT)
    return target


FIT = "the window of shapes lies inside src from src_offset on, and inside dst from dst_offset on"


def _row(
    result: ShapedType,
    dst: Region,
    src: Region,
    dst_offset: tuple[int, ...],
    src_offset: tuple[int, ...],
    shapes: tuple[int, ...],
    transpose: bool,
    valid_shape: tuple[int, ...] | None,
) -> Region:
    size = valid_shape or shapes
    check_part(size, shapes)
    target = dst if isinstance(result, TensorType) else dst.moved(np.array, dst.valid)
    come = _window(src, src_offset, size)
    go = _window(dst, dst_offset, size[::-1] if transpose else size)
    touch(Access.READ, src.data[come])
    touch(Access.WRITE, target.data[go])
    given, shade = np.array(src.data[come]), np.array(src.shade(come))
    target.data[go] = np.transpose(given) if transpose else given
    if target.shadow is not None:
        target.shadow[go] = np.transpose(shade) if transpose else shade
    return target


def _window(region: Region, starts: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    for axis, (start, size, extent) in enumerate(zip(starts, sizes, region.data.shape, strict=True)):
        if start < 0 or start + size > extent:
            raise ExecutionError(f"axis {axis}: {size} element(s) at {start} do not fit 0 to {extent}", help=FIT)
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))


def _paged_type(
    src: Expr,
    indices: Expr,
    block_table: Expr,
    block_size: int,
    size: int,
    max_indices: int,
    space: MemorySpace,
    col_off: Expr,
    is_trans: bool,
    is_b_matrix: bool,
) -> TensorType:
    source = check_whole(src, "src")
    check_rank(source, 2, "src")
    check_dtype(source.dtype, PAGED, ["src"])
    for value, name in ((indices, "indices"), (block_table, "block_table")):
        check_index(value, (INT32,), name)
        _check_list(check_whole(value, name), name)
    for number, name in ((block_size, "block_size"), (size, "size"), (max_indices, "max_indices")):
        if isinstance(number, bool) or number <= 0:
            raise AttributeValueError(f"{name} must be positive, got {number}", help="it counts rows or columns")
    if space not in (MemorySpace.Vec, MemorySpace.Mat) or (is_trans and space is not MemorySpace.Mat):
        kind = "a transposed result" if is_trans else "the result"
        raise AttributeValueError(f"{kind} of paged_gather cannot lie in {space.name}", help="space=pl.Mem.Mat")
    asked = shaped(indices).shape[-1]
    if isinstance(asked, int) and asked > max_indices:
        message = f"{asked} indices are more than max_indices, {max_indices}"
        raise ShapeMismatchError(message, blame=["indices"], help="max_indices is how many rows the result has")
    _check_columns(source.shape[1], col_off, size)
    return tensor((size, max_indices) if is_trans else (max_indices, size), source.dtype)


def _check_list(type_: ShapedType, name: str) -> None:
    if len(type_.shape) not in (1, 2) or (len(type_.shape) == 2 and type_.shape[0] != 1):
        raise ShapeMismatchError(f"`{name}` must be [n] or [1, n], got {type_}", blame=[name], help="pl.reshape it")


def _check_columns(columns: Extent, col_off: Expr, size: int) -> None:
    reach = bounds(col_off)
    if fits(col_off, size, columns) is False and reach is not None:
        message = f"columns {reach[0]} to {reach[0] + size} lie outside 0 to {columns}"
        raise OutOfBoundsError(message, blame=["col_off"], help="col_off and size lie inside the rows of src")


def _paged(
    result: TensorType,
    src: Region,
    indices: Region,
    block_table: Region,
    block_size: int,
    size: int,
    max_indices: int,
    space: MemorySpace,
    col_off: int,
    is_trans: bool,
    is_b_matrix: bool,
) -> Region:
    numbers, table = (np.reshape(region.seen(), -1) for region in (indices, block_table))
    if numbers.size > max_indices:
        raise ExecutionError(f"{numbers.size} indices are more than max_indices, {max_indices}")
    if not 0 <= col_off <= src.data.shape[1] - size:
        raise ExecutionError(f"columns {col_off} to {col_off + size} lie outside 0 to {src.data.shape[1]}")
    inside(numbers, table.size * block_size, "indices")
    blocks = table[numbers // block_size].astype(np.int64)
    rows = inside(blocks * block_size + numbers % block_size, src.data.shape[0], "block_table")
    window: Any = src.data[:, col_off : col_off + size]
    touch_each(Access.READ, window, (rows,))
    data, shadow = np.zeros((max_indices, size), src.data.dtype), np.zeros((max_indices, size), np.uint8)
    data[: rows.size] = window[rows]
    shadow[: rows.size] = src.shade((slice(None), slice(col_off, col_off + size)))[rows]
    found = Region(data, data.shape, shadow if shadow.any() else None, src.origin)
    return (
        found.moved(lambda array: np.array(np.transpose(array), order="C"), (size, max_indices)) if is_trans else found
    )


@op(
    kinds=TENSOR, infer=_holder_type, evaluate=_holder, effect=Effect.ALLOCATE, accepts=ANY,
    example="acc = pl.create_l1([16, 32], pl.FP32)\nacc = pl.gather_row(acc, x, [0, 0], [0, 0], [16, 32])\n"
    "out = pl.store(pl.load(acc, [0, 0], [16, 32]), [0, 0], out)",
)  # fmt: skip
def create_l1(shape: Extents, dtype: DataType, transpose: bool = False) -> Tensor:
    """Return a new buffer for `gather_row` to fill, its elements unspecified."""
    ...


@op(
    kinds=UNIFIED, infer=_row_type, evaluate=_row, family="update", effect=Effect.WRITE, alias="dst", writes="dst",
    accepts=ANY, touches=("src",), undefined=Undefined.MOVES,
    example="both = pl.gather_row(a, y, [8, 0], [2, 0], [4, 32])\nout = pl.store(both, [0, 0], out)",
)  # fmt: skip
def gather_row(
    dst: X,
    src: Tensor,
    dst_offset: Extents,
    src_offset: Extents,
    shapes: Extents,
    transpose: bool = False,
    *,
    valid_shape: Extents | None = None,
) -> X:
    """Copy a window of `src` into `dst` and return that: `shapes` elements from `src_offset` to `dst_offset` on.

    With `transpose` rows become columns. `valid_shape` says how much of the window is copied; only that has to fit.
    """
    ...


@op(
    kinds=TENSOR, infer=_paged_type, evaluate=_paged, effect=Effect.ALLOCATE, accepts=PAGED, touches=("src",),
    domain=(0.0, 0.9),
    example="table = pl.create_tensor([4], dtype=pl.INT32, init_value=1)\n"
    "places = pl.create_tensor([16], dtype=pl.INT32, init_value=5)\n"
    "rows = pl.paged_gather(x, places, table, block_size=4, size=32, max_indices=16)\n"
    "out = pl.store(pl.load(rows, [0, 0], [16, 32]), [0, 0], out)",
)  # fmt: skip
def paged_gather(
    src: Tensor,
    indices: Tensor,
    block_table: Tensor,
    block_size: int,
    size: int,
    max_indices: int,
    *,
    space: MemorySpace = MemorySpace.Mat,
    col_off: Index = 0,
    is_trans: bool = False,
    is_b_matrix: bool = False,
) -> Tensor:
    """Return rows of `src` that lie in blocks of `block_size`: `block_table` says which block stands for which.

    Row i of the result is the one that `indices[i]` counts, `size` columns of it from `col_off` on; rows after the last
    index are zero. With `is_trans` the rows are the columns of the result.
    """
    ...
