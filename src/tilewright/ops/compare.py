"""Comparison and selection. A tile's comparison is a packed mask: one bit per element, eight columns a byte."""

from dataclasses import replace
from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Number, Tile, X
from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr
from tilewright.core.op import Undefined
from tilewright.core.region import PADDING, Array, Region, embed, shaded, undefined_message
from tilewright.core.types import ShapedType, TensorType, TileType, show_shape, static_shape, tile
from tilewright.dtypes import BOOL, INT64, UINT8, DataType, meet, round_to
from tilewright.errors import AttributeValueError, ExecutionError, ShapeMismatchError
from tilewright.ops.aliases import scalar_form
from tilewright.ops.declare import INTEGERS, NUMBERS, TILE, UNIFIED, op
from tilewright.ops.families import (
    apply,
    broadcast_valid,
    check_dtype,
    elementwise_dtype,
    elementwise_type,
    look,
    shaped,
)
from tilewright.ops.masks import evaluated

__all__ = ["cmp", "cmps", "sel", "sels"]


def _mask_columns(columns: int) -> int:
    """Return the bytes a row of packed bits takes, in whole 32-byte blocks."""
    return (columns + 255) // 256 * 32


def _cmp_type(lhs: Expr, rhs: Expr, cmp_type: int) -> ShapedType:
    if cmp_type not in list(CmpType):
        raise AttributeValueError(
            f"cmp_type must be 0 to 5, got {cmp_type}", help="0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge: see pl.CmpType"
        )
    values = {"lhs": lhs, "rhs": rhs}
    check_dtype(elementwise_dtype(values), NUMBERS, list(values))
    result = elementwise_type(values, shaped(lhs).dtype)
    if isinstance(result, TensorType):
        return result
    *rows, columns = result.valid
    packed = (columns + 7) // 8 if isinstance(columns, int) else None
    return tile((*result.shape[:-1], _mask_columns(result.shape[-1])), UINT8, (*rows, packed))


def _compare(cmp_type: int, lhs: Array, rhs: Array) -> Array:
    tests = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    return tests[cmp_type](lhs, rhs)


def beside_scalar(dtype: DataType) -> DataType:
    """Return the type that elements of a tensor are compared with a scalar in: one that holds scalars too, if any."""
    return meet(dtype, INT64) or dtype


def _cmp(result: ShapedType, lhs: Any, rhs: Any, cmp_type: int) -> Region:
    def flag(a: Array, b: Array) -> Array:
        return _compare(cmp_type, a, b).astype(np.int64)

    look([value for value in (lhs, rhs) if isinstance(value, Region)])
    if isinstance(rhs, Region):
        flags = evaluated(flag, UINT8, [lhs, rhs])
    else:
        held = lhs.dtype if isinstance(result, TileType) else beside_scalar(lhs.dtype)
        flags = apply(flag, held, UINT8, [lhs, rhs])
    if isinstance(result, TensorType):
        return embed(flags.live, flags.data.shape, result.dtype)
    packed = embed(np.packbits(flags.live, axis=-1, bitorder="little"), result.shape, UINT8)
    return replace(packed, bits=flags.valid[-1])


def _unpack(mask: Region, like: tuple[int, ...]) -> Array:
    """Return the bits of a mask, the least significant of each word first; bools are their own."""
    if mask.dtype == BOOL:
        return mask.seen(tuple(slice(0, extent) for extent in like))
    if mask.bits is not None and 0 not in like and like[-1] > mask.bits:
        raise ExecutionError(undefined_message(mask.origin), help=PADDING)
    words = -(-like[-1] // (8 * mask.data.itemsize))
    rows: Any = mask.seen((*(slice(0, extent) for extent in like[:-1]), slice(0, words)))
    held = np.frombuffer(rows.tobytes(), np.uint8)
    bytes_ = np.reshape(held, (*rows.shape[:-1], words * mask.data.itemsize))
    return np.unpackbits(bytes_, axis=-1, bitorder="little")[..., : like[-1]].astype(bool)


def _sel_type(mask: Expr, lhs: Expr, rhs: Expr, tmp: Expr | None) -> ShapedType:
    return _selected(mask, {"lhs": lhs, "rhs": rhs})


CARRIERS = frozenset((BOOL, *(t for t in INTEGERS if t.bits <= 32)))
"""The element types whose bits can be a mask, one for each element."""


def _selected(by: Expr, values: dict[str, Expr]) -> ShapedType:
    """Return the type of what a mask selects from values; ShapeMismatchError where it does not fit them."""
    mask, result = shaped(by), elementwise_type(values, elementwise_dtype(values))
    if mask.dtype == BOOL and mask.shape != result.shape:
        message = f"selecting {result} needs a mask of {show_shape(result.shape)} bools, got {mask}"
        raise ShapeMismatchError(message, blame=["mask"], help="pl.where(mask, x, y) takes masks that broadcast")
    *rows, columns = static_shape(result.shape)
    given, bits = static_shape(mask.shape), mask.dtype.bits
    fits = len(given) == len(result.shape) and all(a >= b for a, b in zip(given[:-1], rows, strict=True))
    if mask.dtype not in CARRIERS or not fits or given[-1] * bits < columns:
        needed = tile((*rows, _mask_columns(columns)), UINT8)
        raise ShapeMismatchError(
            f"selecting {result} needs a mask of {needed}, got {mask}",
            blame=["mask"],
            help="pl.cmp makes one; bools are one, and integers of 8, 16 or 32 bits, a bit for each column",
        )
    wanted = (*result.valid[:-1], -(-result.valid[-1] // bits) if isinstance(result.valid[-1], int) else None)
    if any(
        isinstance(have, int) and isinstance(n, int) and have < n for have, n in zip(mask.valid, wanted, strict=True)
    ):
        message = f"selecting {result} needs {show_shape(wanted)} valid words of {bits} bits, got {mask}"
        raise ShapeMismatchError(message, blame=["mask"])
    return result


def _sel(result: TileType, mask: Region, lhs: Region, rhs: Region, tmp: Region | None) -> Region:
    bits = _unpack(mask, broadcast_valid([lhs, rhs]))

    def choose(taken: Array, other: Array) -> Array:
        return np.where(bits, taken, other)

    return apply(choose, result.dtype, result.dtype, [lhs, rhs])


def _sels_type(mask: Expr, src: Expr, tmp: Expr | None, scalar: Expr) -> ShapedType:
    return _selected(mask, {"src": src, "scalar": scalar})


def _sels(result: TileType, mask: Region, src: Region, tmp: Region | None, scalar: Any) -> Region:
    other = round_to(np.asarray(scalar), result.dtype)
    chosen = embed(np.where(_unpack(mask, src.valid), src.live, other), src.data.shape, result.dtype)
    return shaded(chosen, [src.shade(src.window)], src.origin)


@op(
    kinds=UNIFIED, infer=_cmp_type, evaluate=_cmp,
    example="mask = pl.cmp(a, b, cmp_type=pl.CmpType.LT)\nout = pl.store(pl.sel(mask, a, b), [0, 0], out)",
)  # fmt: skip
def cmp(lhs: X, rhs: X | Number, cmp_type: int = 0) -> X:
    """Return how each pair of elements compares: 0 or 1 in a tensor, a packed bit mask for tiles."""
    ...


@op(
    kinds=TILE, infer=_sel_type, evaluate=_sel, undefined=Undefined.SPREADS,
    example="mask = pl.cmp(a, b, cmp_type=pl.CmpType.GE)\nout = pl.store(pl.sel(mask, a, b), [0, 0], out)",
)  # fmt: skip
def sel(mask: Tile, lhs: Tile, rhs: Tile, tmp: Tile | None = None) -> Tile:
    """Return elements of `lhs` where `mask` is set, of `rhs` elsewhere.

    A mask is bools in the shape of the result, what `cmp` gives, or integers of 8, 16 or 32 bits from anywhere, the
    least significant bit of each word for its first column. `where` does the same with what broadcasts.
    """
    ...


@op(
    kinds=TILE, infer=_sels_type, evaluate=_sels, undefined=Undefined.SPREADS, keeps_bits=("scalar",),
    example="mask = pl.cmps(a, 0.0, cmp_type=pl.CmpType.GT)\nout = pl.store(pl.sels(mask, a, scalar=0.5), [0, 0], out)",
)  # fmt: skip
def sels(mask: Tile, src: Tile, tmp: Tile | None = None, scalar: Number = 0) -> Tile:
    """Return elements of `src` where `mask` is set, `scalar` elsewhere.

    Masks are those of `sel`. Where elements have no sign, a negative number stands for its bits.
    """
    ...


cmps = scalar_form(cmp, converts=False)
