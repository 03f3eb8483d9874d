"""Generators: tiles and tensors of numbers that count, of ones in a triangle, and of random bits."""

from collections.abc import Sequence
from typing import Any

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.annotations import Extents, Index, Number, Tensor, Tile
from tilewright.core.expr import Const, Expr
from tilewright.core.extents import dtype_of
from tilewright.core.foreign_names import called
from tilewright.core.region import Region, embed
from tilewright.core.types import ShapedType, TensorType, TileType, show_shape, tensor, tile
from tilewright.dtypes import INDEX, INT32, UINT32, DataType, round_to
from tilewright.errors import AttributeValueError, DTypeMismatchError, ShapeMismatchError
from tilewright.ops.declare import TENSOR, TILE, op
from tilewright.ops.families import check_dtype
from tilewright.ops.philox import ROUNDS, WORD, random_words
from tilewright.ops.windows import check_part, check_rank, tile_shape, valid_extents

__all__ = ["ci", "random", "tile_ci", "tile_random", "tri"]

COUNTED = frozenset((dt.INT16, dt.INT32, dt.UINT16, dt.UINT32))
ONES = frozenset((dt.INT8, dt.INT16, dt.INT32, dt.UINT8, dt.UINT16, dt.UINT32, dt.FP16, dt.BF16, dt.FP32))
BITS = frozenset((INT32, UINT32))


def _counted_shape(start: Expr, shape: Sequence[Expr], dtype: DataType) -> tuple[int, ...]:
    """Return the extents of a row of numbers; ShapeMismatchError where they are no row."""
    check_dtype(dtype, COUNTED, ["dtype"])
    extents = tile_shape(shape, "shape")
    if any(extent != 1 for extent in extents[:-1]) or extents[-1] == 1:
        message = f"numbers count along one row of several elements, got {show_shape(extents)}"
        raise ShapeMismatchError(message, blame=["shape"], help="for example [1, 64]")
    if dtype_of(start) != dtype:
        raise DTypeMismatchError(
            f"the first number must be {dtype}, got {dtype_of(start)}",
            blame=["start"],
            help=f"convert it: pl.cast(start, pl.{dtype.symbol})",
        )
    return extents


def _ci_tile(start: Expr, shape: tuple[Expr, ...], dtype: DataType, descending: bool) -> TileType:
    return tile(_counted_shape(start, shape, dtype), dtype)


def _ci_tensor(start: Expr, shape: tuple[Expr, ...], dtype: DataType, descending: bool) -> TensorType:
    return tensor(_counted_shape(start, shape, dtype), dtype)


def _ci(result: ShapedType, start: int, shape: tuple[int, ...], dtype: DataType, descending: bool) -> Region:
    steps = np.reshape(np.arange(shape[-1], dtype=np.int64), shape)
    return embed(round_to(start - steps if descending else start + steps, dtype), shape, dtype)


def _matrix(shape: Sequence[Expr]) -> tuple[int, ...]:
    check_rank(shape, 2, "shape", "tile")
    return tile_shape(shape, "shape")


def _tri_type(
    diagonal: Expr, shape: tuple[Expr, ...], valid_shape: tuple[Expr, ...] | None, dtype: DataType, upper: bool
) -> TileType:
    check_dtype(dtype, ONES, ["dtype"])
    if dtype_of(diagonal) not in (INDEX, INT32):
        message = f"the diagonal is an int or an int32 scalar, got {dtype_of(diagonal)}"
        raise DTypeMismatchError(message, blame=["diagonal"], help="convert it: pl.cast(diagonal, pl.INT32)")
    extents = _matrix(shape)
    if valid_shape is None:
        return tile(extents, dtype)
    check_rank(valid_shape, 2, "valid_shape", "tile")
    valid = tile_shape(valid_shape, "valid_shape")
    return tile(extents, dtype, valid_extents(extents, valid_shape) and valid)


def _tri(result: TileType, diagonal: int, upper: bool, **_: Any) -> Region:
    rows, columns = (int(extent) for extent in result.valid if isinstance(extent, int))
    places = np.reshape(np.arange(columns), (1, columns)) - np.reshape(np.arange(rows), (rows, 1))
    return embed((places >= diagonal) if upper else (places <= diagonal), result.shape, result.dtype)


_WORDS = ("key0", "key1", "counter0", "counter1", "counter2", "counter3")


def _random_shape(shape: Sequence[Expr], dtype: DataType, rounds: int, words: dict[str, Expr]) -> tuple[int, ...]:
    check_dtype(dtype, BITS, ["dtype"])
    if rounds not in ROUNDS:
        raise AttributeValueError(f"rounds must be 7 or 10, got {rounds}", blame=["rounds"], help="leave it out for 10")
    for name, word in words.items():
        fits = dtype_of(word) in (INT32, UINT32, INDEX)
        if isinstance(word, Const):
            fits = fits and -(1 << 31) <= word.value < 1 << 32
        if not fits:
            message = f"`{name}` is a word of 32 bits, got {word if isinstance(word, Const) else dtype_of(word)}"
            raise DTypeMismatchError(message, blame=[name], help=f"convert it: pl.cast({name}, pl.INT32)")
    return _matrix(shape)


def _random_tile(
    shape: tuple[Expr, ...], valid_shape: tuple[Expr, ...] | None, dtype: DataType, rounds: int, **words: Expr
) -> TileType:
    extents = _random_shape(shape, dtype, rounds, words)
    if valid_shape is not None:
        check_rank(valid_shape, 2, "valid_shape", "tile")
    return tile(extents, dtype, valid_extents(extents, valid_shape))


def _random_tensor(shape: tuple[Expr, ...], dtype: DataType, rounds: int, **words: Expr) -> TensorType:
    return tensor(_random_shape(shape, dtype, rounds, words), dtype)


def _random(
    result: ShapedType,
    shape: tuple[int, ...],
    dtype: DataType,
    rounds: int,
    valid_shape: tuple[int, ...] | None = None,
    **words: int,
) -> Region:
    valid = shape if valid_shape is None else valid_shape
    check_part(valid, shape)
    key, counter = (tuple(words[name] & WORD for name in names) for names in (_WORDS[:2], _WORDS[2:]))
    return embed(round_to(random_words(key, counter, valid, rounds), dtype), shape, dtype)


@op(
    kinds=TENSOR, infer=_ci_tensor, evaluate=_ci, accepts=COUNTED,
    example="counts = pl.cast(pl.arange(5, [1, 32], dtype=pl.INT32), pl.FP32)\n"
    "out = pl.store(pl.load(counts, [0, 0], [1, 32]), [0, 0], out)",
)  # fmt: skip
def ci(start: Number, shape: Extents, dtype: DataType = INT32, descending: bool = False) -> Tensor:
    """Return a row of numbers that count up from `start`, or down, and wrap around; `arange` is the same."""
    ...


@op(
    kinds=TILE, name="ci", infer=_ci_tile, evaluate=_ci, accepts=COUNTED,
    example="counts = pl.tile.ci(5, [1, 32], dtype=pl.INT32, descending=True)\n"
    "out = pl.store(pl.cast(counts, pl.FP32), [0, 0], out)",
)  # fmt: skip
def tile_ci(start: Number, shape: Extents, dtype: DataType = INT32, descending: bool = False) -> Tile:
    """Return a row of numbers that count up from `start`, or down, and wrap around; `arange` is the same."""
    ...


@called("numpy", torch="tril")
@op(
    kinds=TILE, infer=_tri_type, evaluate=_tri, accepts=ONES,
    example="out = pl.store(pl.tri(0, [16, 32], dtype=pl.FP32), [0, 0], out)",
)  # fmt: skip
def tri(
    diagonal: Index, shape: Extents, valid_shape: Extents | None = None, dtype: DataType = INT32, upper: bool = False
) -> Tile:
    """Return ones up to a diagonal of each row, or with `upper` from there on, and zeros elsewhere.

    The diagonal begins `diagonal` columns to the right of the first element.
    """
    ...


@op(
    kinds=TENSOR, infer=_random_tensor, evaluate=_random, accepts=BITS,
    example="bits = pl.random(1, 2, 3, 4, 5, 6, [16, 32])\n"
    "out = pl.store(pl.cast(pl.load(bits, [0, 0], [16, 32]), pl.FP32), [0, 0], out)",
)  # fmt: skip
def random(
    key0: Index,
    key1: Index,
    counter0: Index,
    counter1: Index,
    counter2: Index,
    counter3: Index,
    shape: Extents,
    dtype: DataType = UINT32,
    rounds: int = 10,
) -> Tensor:
    """Return random bits: the words of Philox 4x32 of 7 or 10 rounds, for a key of two and a counter of four words.

    Four neighbours are the words of one block, and the counter of a block is one more than that of the block before it.
    Rows of a multiple of 256 elements follow each other without a gap.
    """
    ...


@op(
    kinds=TILE, name="random", infer=_random_tile, evaluate=_random, accepts=BITS,
    example="bits = pl.tile.random(1, 2, 3, 4, 5, 6, [16, 32], dtype=pl.INT32, rounds=7)\n"
    "out = pl.store(pl.cast(bits, pl.FP32), [0, 0], out)",
)  # fmt: skip
def tile_random(
    key0: Index,
    key1: Index,
    counter0: Index,
    counter1: Index,
    counter2: Index,
    counter3: Index,
    shape: Extents,
    valid_shape: Extents | None = None,
    dtype: DataType = UINT32,
    rounds: int = 10,
) -> Tile:
    """Return random bits: the words of Philox 4x32 of 7 or 10 rounds, for a key of two and a counter of four words.

    Four neighbours are the words of one block, and the counter of a block is one more than that of the block before it.
    Valid rows of a multiple of 256 elements follow each other without a gap.
    """
    ...
