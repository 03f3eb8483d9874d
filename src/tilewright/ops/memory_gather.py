"""Gathering from memory: rows or elements of a tensor, brought into a tile."""

from math import prod

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.access import Access, touch_each
from tilewright.core.annotations import Extents, Tensor, Tile
from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Expr
from tilewright.core.extents import product
from tilewright.core.op import Effect
from tilewright.core.region import Array, Region, blank, shaded
from tilewright.core.types import ShapedType, TensorType, TileType, is_static, static_shape
from tilewright.dtypes import INT32
from tilewright.errors import AttributeValueError, NotStaticError, OperandError, ShapeMismatchError
from tilewright.ops.declare import TILE, op
from tilewright.ops.families import check_dtype, shaped
from tilewright.ops.indices import check_index, check_rank, check_whole, chosen, exceeds, inside
from tilewright.ops.windows import tile_shape, valid_extents

__all__ = ["mgather"]

FETCHED = frozenset((
    dt.INT8, dt.INT16, dt.INT32, dt.UINT8, dt.UINT16, dt.UINT32, dt.FP16, dt.BF16, dt.FP32,
    dt.FP8E4M3FN, dt.FP8E5M2, dt.FP8E8M0,
))  # fmt: skip
COALESCE = ("row", "elem")
OUT_OF_BOUNDS = ("undefined", "clamp", "wrap", "zero")


def _mgather_type(
    mem: Expr,
    idx: Expr,
    coalesce: str | int,
    gather_oob: str | int,
    target_memory: MemorySpace,
    scratch: Expr | None,
    valid_shape: tuple[Expr, ...] | None,
) -> TileType:
    by_row = chosen(coalesce, COALESCE, "coalesce") == "row"
    chosen(gather_oob, OUT_OF_BOUNDS, "gather_oob")
    source, places = check_whole(mem, "mem"), shaped(idx)
    check_dtype(source.dtype, FETCHED, ["mem"])
    check_index(idx, (INT32,), "idx")
    check_rank(places, 2, "idx")
    _check_target(mem, idx, by_row, target_memory, scratch, valid_shape)
    if not is_static(places.shape):
        raise NotStaticError(f"a tile's shape must be static, and idx is {places}", blame=["idx"])
    if by_row and (len(source.shape) < 2 or 1 not in places.shape):
        message = f"rows need a tensor of two axes or more and an idx of [1, R] or [R, 1], got {source} and {places}"
        raise ShapeMismatchError(message, blame=["mem", "idx"], help='coalesce="elem" takes single elements')
    count = prod(static_shape(places.shape))
    shape = (count, _width(source)) if by_row else static_shape(places.shape)
    valid = (product(places.valid), shape[1]) if by_row else places.valid
    if target_memory is MemorySpace.Vec:
        return TileType(shape, source.dtype, valid)
    return _matrix(shape, source, valid_shape)


def _check_target(
    mem: Expr,
    idx: Expr,
    by_row: bool,
    target_memory: MemorySpace,
    scratch: Expr | None,
    valid_shape: tuple[Expr, ...] | None,
) -> None:
    """Raise unless indices, scratch and valid part are what a memory space is filled with."""
    if target_memory not in (MemorySpace.Vec, MemorySpace.Mat):
        raise AttributeValueError(
            f"mgather fills Vec or Mat, not {target_memory.name}", help="pl.Mem.Vec or pl.Mem.Mat"
        )
    is_matrix = target_memory is MemorySpace.Mat
    if isinstance(shaped(idx), TensorType) is not is_matrix:
        needed = "a tensor" if is_matrix else "a tile"
        help = "give the tensor itself" if is_matrix else "load it: pl.load(idx, [0, 0], [1, R])"
        raise OperandError(f"idx must be {needed} for {target_memory.name}, got {idx.type}", blame=["idx"], help=help)
    if valid_shape is not None and not is_matrix:
        help = "the valid part of idx says how much is taken; pl.set_validshape narrows it"
        raise AttributeValueError("valid_shape is for target_memory=pl.Mem.Mat", help=help)
    if (scratch is not None) is not (is_matrix and not by_row):
        what = "needs a scratch tensor" if scratch is None else "takes no scratch tensor"
        help = 'scratch= comes with coalesce="elem" and target_memory=pl.Mem.Mat, and only then'
        raise OperandError(f"this mgather {what}", blame=["scratch"] if scratch is not None else [], help=help)
    if scratch is not None:
        _check_scratch(mem, idx, scratch)


def _check_scratch(mem: Expr, idx: Expr, scratch: Expr) -> None:
    room, source, places = shaped(scratch), shaped(mem), shaped(idx)
    if scratch in (mem, idx):
        raise OperandError("scratch must be a tensor of its own", blame=["scratch"], help="pl.create_tensor makes one")
    if room.dtype != source.dtype or exceeds(product(places.shape), product(room.shape)):
        message = f"scratch must hold {source.dtype} elements, at least as many as idx, got {room}"
        raise ShapeMismatchError(message, blame=["scratch", "idx"], help="make it with the shape of idx")


def _width(source: ShapedType) -> int:
    width = source.shape[-1]
    if not isinstance(width, int):
        help = "give the tensor's last axis a fixed extent"
        raise NotStaticError(f"the rows of a tile have a fixed length, got {source}", blame=["mem"], help=help)
    return width


def _matrix(shape: tuple[int, ...], source: ShapedType, valid_shape: tuple[Expr, ...] | None) -> TileType:
    """Return the type of a tile in matrix memory, which is made of boxes."""
    rows, columns = shape
    across = 32 // source.dtype.get_byte()
    if rows % 16 or columns % across:
        message = f"a tile in Mat has a multiple of 16 rows and of {across} columns, got {list(shape)}"
        raise ShapeMismatchError(message, blame=["idx"], help="pad idx, or gather into pl.Mem.Vec")
    valid = shape
    if valid_shape is not None:
        valid = tile_shape(valid_shape, "valid_shape")
        if len(valid) != 2:
            raise ShapeMismatchError(f"valid_shape has two entries, got {list(valid)}", blame=["valid_shape"])
        valid_extents(shape, valid_shape)
    return TileType(shape, source.dtype, valid, MemorySpace.Mat)


def bounded(index: Array, count: int, mode: str) -> tuple[Array, Array]:
    """Return the indices that are taken, and where among the given ones they stand."""
    unsigned = index.astype(np.int64) & 0xFFFFFFFF
    there = np.ones(index.shape, bool)
    if mode == "undefined":
        inside(unsigned, count, "idx")
    elif mode == "zero":
        there = unsigned < count
    else:
        inside(np.zeros(min(index.size, 1), np.int64), count, "idx")  # of nothing there is nothing to take
        unsigned = np.minimum(unsigned, count - 1) if mode == "clamp" else unsigned % max(count, 1)
    return unsigned[there].astype(np.intp), there


def _mgather(
    result: TileType,
    mem: Region,
    idx: Region,
    coalesce: str | int,
    gather_oob: str | int,
    target_memory: MemorySpace,
    scratch: Region | None,
    valid_shape: tuple[int, ...] | None,
) -> Region:
    by_row, mode = chosen(coalesce, COALESCE, "coalesce") == "row", chosen(gather_oob, OUT_OF_BOUNDS, "gather_oob")
    index, (rows, columns) = idx.seen(), valid_shape or result.shape
    index = np.reshape(index, -1)[:rows] if by_row else index[:rows, :columns]  # what is not asked for is not taken
    source = mem.moved(lambda array: array[..., :columns], mem.valid) if by_row else mem
    axes = mem.data.shape[:-1] if by_row else mem.data.shape
    numbers, there = bounded(index, prod(axes), mode)
    live = np.zeros((index.size, columns) if by_row else index.shape, mem.data.dtype)
    shade = np.zeros(live.shape, np.uint8)
    if numbers.size:
        places = np.unravel_index(numbers, axes)
        touch_each(Access.READ, source.data, places)
        live[there] = source.data[places]
        shade[there] = source.shade(places)  # pyright: ignore[reportArgumentType]
    data = blank(result.shape, result.dtype)
    found = Region(data, live.shape)
    data[found.window] = live
    return shaded(found.forgotten(), [shade], mem.origin)


@op(
    kinds=TILE, infer=_mgather_type, evaluate=_mgather, effect=Effect.READ, accepts=FETCHED, unread=("scratch",),
    domain=(0.0, 0.9), codes={"coalesce": COALESCE, "gather_oob": OUT_OF_BOUNDS},
    example="rows = pl.cast(pl.tile.full([1, 16], dtype=pl.FP32, value=3.0), pl.INT32)\n"
    "out = pl.store(pl.mgather(x, rows), [0, 0], out)",
)  # fmt: skip
def mgather(
    mem: Tensor,
    idx: Tile | Tensor,
    coalesce: str | int = "row",
    *,
    gather_oob: str | int = "undefined",
    target_memory: MemorySpace = MemorySpace.Vec,
    scratch: Tensor | None = None,
    valid_shape: Extents | None = None,
) -> Tile:
    """Return the rows of `mem` that `idx` names or, with coalesce="elem", the elements that it counts.

    Indices are read as unsigned numbers. One that is too large is an error unless `gather_oob` says what it stands for:
    "clamp" the last one, "wrap" the remainder, "zero" zeros. A tile in `pl.Mem.Mat` is filled by indices in memory;
    elements come through `scratch`, whose content does not matter, and `valid_shape` says how much is taken.
    """
    ...
