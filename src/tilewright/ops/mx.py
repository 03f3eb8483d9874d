"""Scaled products: matrices of small floats, with a power of two for every 32 of them along the inner axis.

The powers of two are given as tiles of their exponents. Tensors of such exponents lie in memory in an order of their
own, two exponents of 16 rows or columns side by side; loading them puts them in order.
"""

from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Tile
from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Expr
from tilewright.core.region import Array, Region, embed, exact
from tilewright.core.types import Extent, ShapedType, TileType, show_shape, static_shape
from tilewright.dtypes import FP8E4M3FN, FP8E8M0, FP32
from tilewright.errors import DTypeMismatchError, ExecutionError, ShapeMismatchError
from tilewright.ops.declare import TILE, op
from tilewright.ops.families import shaped
from tilewright.ops.matmul import check_accumulator, check_bias, summed

__all__ = ["matmul_mx", "matmul_mx_acc", "matmul_mx_bias"]

GROUP = 32
"""How many elements share a power of two."""
MULTIPLES = {"M": 16, "K": 64, "N": 32}

SHORT = "both sides of a scaled product are valid in equally many columns and rows, and in the last group of 32"
MISSING = "a scaled product reads exponents that are not there"


def _type(lhs: Expr, lhs_scale: Expr, rhs: Expr, rhs_scale: Expr) -> TileType:
    types = {"lhs": shaped(lhs), "lhs_scale": shaped(lhs_scale), "rhs": shaped(rhs), "rhs_scale": shaped(rhs_scale)}
    for name, type_ in types.items():
        wanted = FP8E8M0 if name.endswith("scale") else FP8E4M3FN
        if type_.dtype != wanted:
            help = f"convert: pl.cast(x, pl.{wanted.symbol})"
            raise DTypeMismatchError(f"`{name}` must hold {wanted} elements, got {type_}", blame=[name], help=help)
        if len(type_.shape) != 2:
            raise ShapeMismatchError(f"`{name}` must have two axes, got {type_}", blame=[name])
    left, right = types["lhs"], types["rhs"]
    (m, k), (inner, n) = static_shape(left.shape), static_shape(right.shape)
    if k != inner:
        found = f"{show_shape(left.shape)} and {show_shape(right.shape)}"
        raise ShapeMismatchError(f"a matrix product needs equal inner sizes, got {found}", blame=["lhs", "rhs"])
    for (name, multiple), extent in zip(MULTIPLES.items(), (m, k, n), strict=True):
        if extent % multiple:
            raise ShapeMismatchError(f"{name} must be a multiple of {multiple}, got {extent}", blame=["lhs", "rhs"])
    for name, wanted in (("lhs_scale", (m, k // GROUP)), ("rhs_scale", (k // GROUP, n))):
        if types[name].shape != wanted:
            message = f"`{name}` must be of shape {show_shape(wanted)}, got {types[name]}"
            raise ShapeMismatchError(message, blame=[name])
    _check_depth(left.valid[1], right.valid[0], k)
    return TileType((m, n), FP32, (left.valid[0], right.valid[1]), MemorySpace.Acc)


def _check_depth(columns: Extent, rows: Extent, depth: int) -> None:
    known = [extent for extent in (columns, rows) if isinstance(extent, int)]
    if len(set(known)) > 1 or any(-(-extent // GROUP) != depth // GROUP for extent in known):
        found = f"{columns} valid columns on the left, {rows} valid rows on the right"
        message = f"a scaled product is not given as much as it needs: {found}"
        raise ShapeMismatchError(message, blame=["lhs", "rhs"], help=SHORT)


def _acc_type(acc: Expr, lhs: Expr, lhs_scale: Expr, rhs: Expr, rhs_scale: Expr) -> ShapedType:
    return check_accumulator(acc, _type(lhs, lhs_scale, rhs, rhs_scale))


def _bias_type(lhs: Expr, lhs_scale: Expr, rhs: Expr, rhs_scale: Expr, bias: Expr) -> ShapedType:
    return check_bias(bias, _type(lhs, lhs_scale, rhs, rhs_scale))


def multiply(lhs: Region, lhs_scale: Region, rhs: Region, rhs_scale: Region) -> Array:
    """Return the exact product of the valid parts."""
    a, b = exact(lhs.seen()), exact(rhs.seen())
    groups = -(-a.shape[1] // GROUP)
    if a.shape[1] != b.shape[0] or groups != lhs_scale.data.shape[1]:
        found = f"{a.shape[1]} valid columns on the left, {b.shape[0]} valid rows on the right"
        raise ExecutionError(f"a scaled product is not given as much as it needs: {found}", help=SHORT)
    needed = ((lhs_scale, (a.shape[0], groups)), (rhs_scale, (groups, b.shape[1])))
    if any(have < want for scale, box in needed for have, want in zip(scale.valid, box, strict=True)):
        raise ExecutionError(MISSING)
    left, right = (exact(scale.seen((slice(0, box[0]), slice(0, box[1])))) for scale, box in needed)
    a = a * np.repeat(left, GROUP, 1)[:, : a.shape[1]]
    b = b * np.repeat(right, GROUP, 0)[: b.shape[0]]
    with np.errstate(all="ignore"):
        return np.matmul(a, b)


def _mx(result: TileType, lhs: Region, lhs_scale: Region, rhs: Region, rhs_scale: Region) -> Region:
    return embed(multiply(lhs, lhs_scale, rhs, rhs_scale), result.shape, FP32)


def _mx_acc(result: TileType, acc: Region, **factors: Any) -> Region:
    return summed(acc, multiply(**factors), result.shape, FP32)


def _mx_bias(result: TileType, bias: Region, **factors: Any) -> Region:
    product = multiply(**factors)
    return embed(product + exact(bias.seen((slice(0, 1), slice(0, product.shape[1])))), result.shape, FP32)


_FACTORS = (
    "small = pl.cast(pl.tile.full([16, 64], dtype=pl.FP32, value=1.5), pl.FP8E4M3FN)\n"
    "other = pl.cast(pl.tile.full([64, 32], dtype=pl.FP32, value=2.0), pl.FP8E4M3FN)\n"
    "rows = pl.cast(pl.tile.full([16, 2], dtype=pl.FP32, value=0.5), pl.FP8E8M0)\n"
    "columns = pl.cast(pl.tile.full([2, 32], dtype=pl.FP32, value=4.0), pl.FP8E8M0)\n"
)


@op(
    kinds=TILE, infer=_type, evaluate=_mx, ulp=8, accepts=(FP8E4M3FN,),
    example=f"{_FACTORS}out = pl.store(pl.matmul_mx(small, rows, other, columns), [0, 0], out)",
)  # fmt: skip
def matmul_mx(lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile) -> Tile:
    """Return the product of two matrices whose elements have a power of two for every 32 along the inner axis."""
    ...


@op(
    kinds=TILE, infer=_acc_type, evaluate=_mx_acc, updates="acc", ulp=8, accepts=(FP8E4M3FN,),
    example=f"{_FACTORS}out = pl.store(pl.matmul_mx_acc(pl.move(a, target_memory=pl.Mem.Acc), small, rows, other, "
    "columns), [0, 0], out)",
)  # fmt: skip
def matmul_mx_acc(acc: Tile, lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile) -> Tile:
    """Return `acc` plus a scaled product."""
    ...


@op(
    kinds=TILE, infer=_bias_type, evaluate=_mx_bias, ulp=8, accepts=(FP8E4M3FN,),
    example=f"{_FACTORS}bias = pl.load(x, [0, 0], [1, 32])\n"
    "out = pl.store(pl.matmul_mx_bias(small, rows, other, columns, bias), [0, 0], out)",
)  # fmt: skip
def matmul_mx_bias(lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile, bias: Tile) -> Tile:
    """Return a scaled product plus the row vector `bias`."""
    ...
