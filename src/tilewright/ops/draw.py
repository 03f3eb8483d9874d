"""Random numbers that depend on a seed and on where they stand, and on nothing else.

Every element has a number, and what it is drawn from are the words of Philox 4x32-10 at that number: whoever draws the
element draws the same, on every back end and however the work is divided. A tile at row `i` and column `j` of a matrix
with `n` columns is drawn with `offset=i * n + j` and `pitch=n`. `rand`, `randn` and `randint` draw from streams of
their own.
"""

from collections.abc import Callable
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Extents, Index, Tile
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.region import Array, Region, embed
from tilewright.core.types import TileType, static_shape
from tilewright.dtypes import FP32, INT32, DataType
from tilewright.errors import ExecutionError, ShapeMismatchError
from tilewright.ops.declare import INTEGERS, TILE, op
from tilewright.ops.families import check_dtype, shaped
from tilewright.ops.forms import form_of
from tilewright.ops.philox import drawn_words
from tilewright.ops.windows import check_part, check_rank, tile_shape, valid_extents

__all__ = ["rand", "randint", "randn"]

STREAMS = {"rand": 0, "randn": 1, "randint": 2}
"""The upper half of the counter of each op's blocks."""
FORMS = ("shape",), ("counters",)
SPAN = 1 << 32
RANGE = "randint draws from low up to high, which is more than low and no more than 4294967296 more"
Reference = Callable[[Array, Array, Array], Array]
"""From the pair of words of each element and whether it is the second of two."""


def _draw_type(dtype: DataType, **given: Any) -> TileType:
    shape: tuple[Expr, ...] | None = given["shape"]
    counters: Expr | None = given["counters"]
    form_of("rand", FORMS, {"shape": shape, "counters": counters})
    if counters is not None:
        check_dtype(shaped(counters).dtype, INTEGERS, ["counters"])
        found = shaped(counters)
        return TileType(static_shape(found.shape), dtype, found.valid)
    assert shape is not None
    extents = tile_shape(shape, "shape")
    if not extents:
        raise ShapeMismatchError("a tile has one axis or more", blame=["shape"])
    valid: tuple[Expr, ...] | None = given["valid_shape"]
    if valid is not None:
        check_rank(valid, len(extents), "valid_shape", "tile")
    return TileType(extents, dtype, valid_extents(extents, valid))


def _numbers(given: dict[str, Any]) -> Array:
    """Return the number of each valid element."""
    if given["counters"] is not None:
        counters: Region = given["counters"]
        return counters.seen().astype(np.int64)
    shape: tuple[int, ...] = given["shape"]
    valid: tuple[int, ...] = shape if given["valid_shape"] is None else given["valid_shape"]
    check_part(valid, shape)
    pitch = shape[-1] if given["pitch"] is None else given["pitch"]
    count, start, step = prod(shape[:-1]), np.asarray(given["offset"], np.int64), np.asarray(pitch, np.int64)
    rows: Array = np.reshape(np.arange(count, dtype=np.int64), (*shape[:-1], 1))
    with np.errstate(over="ignore"):
        found: Array = start + rows * step + np.arange(shape[-1], dtype=np.int64)
    return found[tuple(slice(0, extent) for extent in valid)]


def _draw(result: TileType, reference: Reference, seed: int, stream: str, given: dict[str, Any]) -> Region:
    first, second, odd = drawn_words(seed, np.ascontiguousarray(_numbers(given)), STREAMS[stream])
    return embed(reference(first, second, odd), result.shape, result.dtype)


def _uniform(first: Array, second: Array, odd: Array) -> Array:
    return (np.where(odd, second, first) >> np.uint64(8)) * 2.0**-24


def _normal(first: Array, second: Array, odd: Array) -> Array:
    """Return the two normal numbers that Box and Muller make of two uniform ones."""
    radius = np.sqrt(-2 * np.log(((first >> np.uint64(8)) + np.uint64(1)) * 2.0**-24))
    turn = (second >> np.uint64(8)).astype(np.int64)
    quarter = (turn + (1 << 21)) >> 22
    angle = (turn - (quarter << 22)) * (np.pi / 2 * 2.0**-22)  # what is left of the nearest quarter is exact
    quarter = quarter + np.where(odd, 0, 1)
    wave = np.where(quarter % 2 == 1, np.cos(angle), np.sin(angle))
    return radius * np.where(quarter % 4 >= 2, -wave, wave)


def _rand_type(seed: Expr, **given: Any) -> TileType:
    return _draw_type(FP32, **given)


def _rand(result: TileType, seed: int, **given: Any) -> Region:
    return _draw(result, _uniform, seed, "rand", given)


def _randn(result: TileType, seed: int, **given: Any) -> Region:
    return _draw(result, _normal, seed, "randn", given)


def _randint_type(seed: Expr, low: Expr, high: Expr, **given: Any) -> TileType:
    return _draw_type(INT32, **given)


def _randint(result: TileType, seed: int, low: int, high: int, **given: Any) -> Region:
    if not 0 < high - low <= SPAN:
        raise ExecutionError(f"there is no number from {low} up to {high}", help=RANGE)

    def whole(first: Array, second: Array, odd: Array) -> Array:
        word = np.where(odd, second, first)
        scaled = word if high - low == SPAN else (word * np.uint64(high - low)) >> np.uint64(32)
        return (scaled.astype(np.int64) + low).astype(np.int32)

    return _draw(result, whole, seed, "randint", given)


_EXAMPLE = "out = pl.store(pl.{}, [0, 0], out)"


@called("torch triton", numpy="np.random.rand")
@op(
    kinds=TILE, infer=_rand_type, evaluate=_rand, accepts=(FP32,),
    orders=(("seed", "counters"),), forms=FORMS,
    example=_EXAMPLE.format("rand(7, [16, 32], offset=512)"),
)  # fmt: skip
def rand(
    seed: Index,
    shape: Extents | None = None,
    offset: Index = 0,
    pitch: Index | None = None,
    *,
    valid_shape: Extents | None = None,
    counters: Tile | None = None,
) -> Tile:
    """Return fp32 numbers from 0 up to 1, drawn with a seed: multiples of 2**-24, each as likely as any other.

    The first element of a tile has the number `offset`, and a row begins `pitch` after the one above it, which is the
    length of a row unless it is given. A tile of `counters` in place of the shape numbers each element itself. Elements
    of one number and seed are the same wherever they are drawn.
    """
    ...


@called("torch triton", numpy="np.random.randn")
@op(
    kinds=TILE, infer=_rand_type, evaluate=_randn, accepts=(FP32,), ulp=6,
    orders=(("seed", "counters"),), forms=FORMS,
    example=_EXAMPLE.format("randn(7, [16, 32])"),
)  # fmt: skip
def randn(
    seed: Index,
    shape: Extents | None = None,
    offset: Index = 0,
    pitch: Index | None = None,
    *,
    valid_shape: Extents | None = None,
    counters: Tile | None = None,
) -> Tile:
    """Return fp32 numbers of the normal distribution around 0 with a deviation of 1, drawn with a seed.

    Elements are numbered as in `rand`. Back ends may differ in the last bits.
    """
    ...


@called("torch triton", numpy="np.random.randint")
@op(
    kinds=TILE, infer=_randint_type, evaluate=_randint, accepts=(INT32,), forms=FORMS,
    orders=(("seed", "low", "high", "counters"),),
    example=_EXAMPLE.format("cast(pl.randint(7, 0, 6, [16, 32]), pl.FP32)"),
)  # fmt: skip
def randint(
    seed: Index,
    low: Index,
    high: Index,
    shape: Extents | None = None,
    offset: Index = 0,
    pitch: Index | None = None,
    *,
    valid_shape: Extents | None = None,
    counters: Tile | None = None,
) -> Tile:
    """Return int32 numbers from `low` up to and without `high`, drawn with a seed.

    Elements are numbered as in `rand`. Of ranges that are no power of two some numbers are likelier than others, by
    less than the size of the range over 2**32.
    """
    ...
