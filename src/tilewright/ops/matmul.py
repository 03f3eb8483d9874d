"""Matrix products. Floats accumulate in fp32, doubles and integers of 64 bits in themselves, other integers in int32.

The interpreter rounds once.

Native code may take subnormal bfloat16 numbers, and subnormal sums of their products, for zero.
"""

from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Condition, Tile, X
from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.region import Array, Region, embed, exact
from tilewright.core.types import Extent, Shape, ShapedType, TensorType, TileType, reshaped, show_shape, static_shape
from tilewright.dtypes import FP32, DataType, from_numpy, promote, round_to
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, OperandError, ShapeMismatchError
from tilewright.ops.convert import convert
from tilewright.ops.declare import TILE, UNIFIED, op
from tilewright.ops.families import broadcast, check_dtype, common_shape, shaped
from tilewright.ops.product_types import SUPPORTED, accumulator, conversion, summed_in

__all__ = [
    "batch_matmul", "batch_matmul_acc", "gemv", "gemv_acc", "gemv_bias", "matmul", "matmul_acc", "matmul_bias",
]  # fmt: skip

VECTORS = "`a @ v` and `v @ a` take vectors; v[:, None] is one as a column, v[None] as a row"
BATCHES = "pl.batch_matmul and `@` multiply matrices along leading axes"


def _axes(type_: ShapedType, transposed: bool) -> tuple[Shape, Shape]:
    """Return shape and valid part as the product sees them."""
    if not transposed:
        return type_.shape, type_.valid
    *batch, rows, columns = type_.shape
    *valid_batch, valid_rows, valid_columns = type_.valid
    return (*batch, columns, rows), (*valid_batch, valid_columns, valid_rows)


def _product_type(lhs: Expr, rhs: Expr, a_trans: bool, b_trans: bool, dtype: DataType) -> ShapedType:
    """Return the type of `lhs @ rhs` with elements of `dtype`."""
    left, right = shaped(lhs), shaped(rhs)
    check_dtype(left.dtype, SUPPORTED, ["lhs"])
    check_dtype(right.dtype, SUPPORTED, ["rhs"])
    (a, a_valid), (b, b_valid) = _axes(left, a_trans), _axes(right, b_trans)
    if len(a) < 2 or len(b) < 2:
        raise ShapeMismatchError(
            f"a matrix product needs two axes, got {left} and {right}", blame=["lhs", "rhs"], help=VECTORS
        )
    if _differ(a[-1], b[-2]):
        raise ShapeMismatchError(
            f"a matrix product needs equal inner sizes, got {show_shape(a)} and {show_shape(b)}", blame=["lhs", "rhs"]
        )
    if _exceeds(a_valid[-1], b_valid[-2]):
        found = f"{a_valid[-1]} valid columns on the left, {b_valid[-2]} valid rows on the right"
        raise ShapeMismatchError(f"a matrix product reads data that is not there: {found}", blame=["lhs", "rhs"])
    batch = broadcast(a[:-2], a_valid[:-2], b[:-2], b_valid[:-2])
    if batch is None:
        raise ShapeMismatchError(f"batch axes do not fit: {show_shape(a)} and {show_shape(b)}", blame=["lhs", "rhs"])
    shape, valid = (*batch[0], a[-2], b[-1]), (*batch[1], a_valid[-2], b_valid[-1])
    if isinstance(left, TileType):
        return TileType(static_shape(shape), dtype, valid, MemorySpace.Acc)
    return TensorType(shape, dtype, valid)


def _differ(a: Extent, b: Extent) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _exceeds(a: Extent, b: Extent) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a > b


def _same_inputs(lhs: Expr, rhs: Expr) -> DataType:
    left, right = shaped(lhs), shaped(rhs)
    if left.dtype != right.dtype:
        raise DTypeMismatchError(
            f"a tile product needs equal element types, got {left.dtype} and {right.dtype}",
            blame=["lhs", "rhs"],
            help=conversion(left.dtype, right.dtype),
        )
    return accumulator(left.dtype)


def _matmul_type(
    lhs: Expr, rhs: Expr, out_dtype: DataType | None, a_trans: bool, b_trans: bool, c_matrix_nz: bool
) -> ShapedType:
    if isinstance(shaped(lhs), TensorType):
        return _product_type(lhs, rhs, a_trans, b_trans, out_dtype or promote(shaped(lhs).dtype, shaped(rhs).dtype))
    _check_plain(a_trans or b_trans or c_matrix_nz)
    deduced = _same_inputs(lhs, rhs)
    if out_dtype not in (None, deduced):
        raise DTypeMismatchError(
            f"a product of these tiles is {deduced}, not {out_dtype}", blame=["lhs"], help="cast the result"
        )
    _check_rank(lhs, rhs, 2)
    return _product_type(lhs, rhs, False, False, deduced)


def _check_plain(has_options: bool) -> None:
    """Raise where a product of tiles is asked to turn them or to lay out its result."""
    if has_options:
        raise OperandError("a_trans, b_trans and c_matrix_nz are for tensors", help="use pl.tile.transpose_view")


def _check_rank(lhs: Expr, rhs: Expr, rank: int) -> None:
    if len(shaped(lhs).shape) != rank or len(shaped(rhs).shape) != rank:
        raise ShapeMismatchError(
            f"this product needs {rank}-D tiles, got {shaped(lhs)} and {shaped(rhs)}",
            blame=["lhs", "rhs"],
            help=VECTORS if min(len(shaped(each).shape) for each in (lhs, rhs)) < 2 else BATCHES,
        )


MISSING_ROWS = "pl.fillpad(rhs) fills its rows with zeros; or load both sides with the same inner extent"


def multiply(lhs: Region, rhs: Region, a_trans: bool = False, b_trans: bool = False) -> Array:
    """Return the exact product of the valid parts."""
    a = np.swapaxes(lhs.seen(), -1, -2) if a_trans else lhs.seen()
    b_whole, b_valid = rhs.seen(), list(rhs.valid)
    if b_trans:
        b_whole = np.swapaxes(b_whole, -1, -2)
        b_valid[-2:] = b_valid[:-3:-1]
    if a.shape[-1] > b_valid[-2]:
        found = f"{a.shape[-1]} valid columns on the left, {b_valid[-2]} valid rows on the right"
        raise ExecutionError(f"a matrix product reads data that is not there: {found}", help=MISSING_ROWS)
    b = b_whole[(*(slice(0, v) for v in b_valid[:-2]), slice(0, a.shape[-1]), slice(0, b_valid[-1]))]
    a, b = exact(a), exact(b)
    common = np.float64 if "f" in (a.dtype.kind, b.dtype.kind) else np.int64
    with np.errstate(all="ignore"):
        return np.matmul(a.astype(common), b.astype(common))


def _summable(values: Array) -> Array:
    values = exact(values)
    return values.astype(np.int64) if values.dtype.kind in "iu" else values


def _shape_of_product(lhs: Region, rhs: Region, a_trans: bool = False, b_trans: bool = False) -> tuple[int, ...]:
    rows = lhs.data.shape[-1] if a_trans else lhs.data.shape[-2]
    columns = rhs.data.shape[-2] if b_trans else rhs.data.shape[-1]
    return (*common_shape(lhs.data.shape[:-2], rhs.data.shape[:-2]), rows, columns)


def _matmul(
    result: ShapedType, lhs: Region, rhs: Region, a_trans: bool = False, b_trans: bool = False, **_: Any
) -> Region:
    product = multiply(lhs, rhs, a_trans, b_trans)
    if product.dtype.kind == "i":
        left, right = from_numpy(lhs.data.dtype), from_numpy(rhs.data.dtype)
        product = round_to(product, summed_in(left, right, result.dtype))
    elif result.dtype.is_int():
        product = convert(round_to(product, FP32), result.dtype, "trunc")
    return embed(product, _shape_of_product(lhs, rhs, a_trans, b_trans), result.dtype)


def _acc_type(
    acc: Expr, lhs: Expr, rhs: Expr, a_trans: bool = False, b_trans: bool = False, init_cond: Expr | None = None
) -> ShapedType:
    dtype = accumulator(promote(shaped(lhs).dtype, shaped(rhs).dtype))
    if isinstance(shaped(lhs), TileType):
        _check_plain(a_trans or b_trans)
        _same_inputs(lhs, rhs)
    if init_cond is not None and len(shaped(acc).shape) > 2:
        raise AttributeValueError("init_cond is for products of two axes", blame=["init_cond"])
    return check_accumulator(acc, _product_type(lhs, rhs, a_trans, b_trans, dtype))


def check_accumulator(acc: Expr, product: ShapedType) -> ShapedType:
    """Return the type of a product added to an accumulator, which has its shape and more batch axes at most."""
    into = shaped(acc)
    if type(into) is not type(product):
        raise OperandError("acc must be of the same kind as the operands", blame=["acc", "lhs"])
    met = broadcast(into.shape[:-2], into.valid[:-2], product.shape[:-2], product.valid[:-2])
    if met is None or (*met[0], *product.shape[-2:]) != into.shape:
        raise ShapeMismatchError(f"acc must be shaped like the product, {product}, got {into}", blame=["acc"])
    if into.dtype != product.dtype:
        raise DTypeMismatchError(f"acc must hold {product.dtype} elements, got {into.dtype}", blame=["acc"])
    return reshaped(product, into.shape, _summed_part(into, product))


def _summed_part(acc: ShapedType, product: ShapedType) -> Shape:
    """Return where a product is added to an accumulator: where both are valid."""
    pad = len(acc.shape) - len(product.shape)
    axes = zip((1,) * pad + product.shape, (1,) * pad + product.valid, acc.shape, acc.valid, strict=True)
    return tuple(have if n == 1 else _least(have, valid, extent) for n, valid, extent, have in axes)


def _least(a: Extent, b: Extent, most: Extent) -> Extent:
    """Return the smaller of two valid extents of an axis, None where nobody knows."""
    if a in (b, most):
        return b
    return a if b == most else min(a, b) if isinstance(a, int) and isinstance(b, int) else None


def _acc(
    result: ShapedType,
    acc: Region,
    lhs: Region,
    rhs: Region,
    a_trans: bool = False,
    b_trans: bool = False,
    init_cond: Any = None,
    **_: Any,
) -> Region:
    product, shape = multiply(lhs, rhs, a_trans, b_trans), _shape_of_product(lhs, rhs, a_trans, b_trans)
    return summed(acc, product, shape, result.dtype, starts_anew=bool(init_cond))


def summed(
    acc: Region, product: Array, shape: tuple[int, ...], dtype: DataType, *, starts_anew: bool = False
) -> Region:
    """Return the valid part of a product of a shape added to an accumulator, where both are valid."""
    pad = (1,) * (acc.data.ndim - product.ndim)
    box = [
        have if n == 1 != extent and valid else min(have, valid)
        for n, valid, extent, have in zip(pad + shape, pad + product.shape, acc.data.shape, acc.valid, strict=True)
    ]
    cut = tuple(slice(0, extent) for extent in box)
    product = np.broadcast_to(product[cut[len(pad) :]], box)
    if not starts_anew:
        with np.errstate(all="ignore"):
            product = product + _summable(acc.seen(cut))
    return embed(product, acc.data.shape, dtype)


def _bias_type(lhs: Expr, rhs: Expr, bias: Expr) -> ShapedType:
    _check_rank(lhs, rhs, 2)
    return check_bias(bias, _product_type(lhs, rhs, False, False, _same_inputs(lhs, rhs)))


def check_bias(bias: Expr, product: ShapedType) -> ShapedType:
    """Return the type of a product with a row added to each of its rows."""
    wanted = (1, product.shape[-1])
    if shaped(bias).shape != wanted or shaped(bias).dtype != product.dtype:
        raise ShapeMismatchError(
            f"bias must be {product.dtype} of shape {show_shape(wanted)}, got {shaped(bias)}", blame=["bias"]
        )
    return product


def _bias(result: ShapedType, lhs: Region, rhs: Region, bias: Region, **_: Any) -> Region:
    product = multiply(lhs, rhs)
    return embed(
        product + _summable(bias.seen((slice(0, 1), slice(0, product.shape[-1])))),
        _shape_of_product(lhs, rhs),
        result.dtype,
    )


def _batch_type(lhs: Expr, rhs: Expr) -> ShapedType:
    return _product_type(lhs, rhs, False, False, _same_inputs(lhs, rhs))


PHASES = ("unspecified", "partial", "final")
"""What `acc_phase` may say of a product among those that are summed: it changes no number."""


def _gemv_type(lhs: Expr, rhs: Expr, acc_phase: str) -> ShapedType:
    _check_row(lhs, rhs, acc_phase)
    return _product_type(lhs, rhs, False, False, _same_inputs(lhs, rhs))


def _check_row(lhs: Expr, rhs: Expr, acc_phase: str) -> None:
    _check_rank(lhs, rhs, 2)
    if shaped(lhs).shape[0] != 1:
        raise ShapeMismatchError(f"gemv needs a row vector [1, K], got {shaped(lhs)}", blame=["lhs"])
    if acc_phase not in PHASES:
        known = ", ".join(map(repr, PHASES))
        raise AttributeValueError(f"acc_phase cannot be {acc_phase!r}", blame=["acc_phase"], help=f"one of {known}")


def _gemv_acc_type(acc: Expr, lhs: Expr, rhs: Expr, acc_phase: str) -> ShapedType:
    _check_row(lhs, rhs, acc_phase)
    return _acc_type(acc, lhs, rhs)


def _gemv_bias_type(lhs: Expr, rhs: Expr, bias: Expr, acc_phase: str) -> ShapedType:
    _check_row(lhs, rhs, acc_phase)
    return _bias_type(lhs, rhs, bias)


_PRELUDE = "bt = pl.tile.transpose_view(b)\n"
_STORE = "\nsquare = pl.store(p, [0, 0], square)"
_ROW = "row = pl.load(x, [0, 0], [1, 32])\n"


@called("numpy torch", numpy="dot", torch="mm", triton="dot")
@op(
    kinds=UNIFIED,
    infer=_matmul_type,
    evaluate=_matmul,
    ulp=8,
    accepts=SUPPORTED,
    example=f"{_PRELUDE}p = pl.matmul(a, bt){_STORE}",
)
def matmul(
    lhs: X,
    rhs: X,
    out_dtype: DataType | None = None,
    a_trans: bool = False,
    b_trans: bool = False,
    c_matrix_nz: bool = False,
) -> X:
    """Return the matrix product; tiles are 2-D and give fp32, int32 or 64 bits, tensors may have batch axes.

    `a_trans`, `b_trans` and `c_matrix_nz` are of tensors: a tile is turned, `b.T`.
    """
    ...


@called(torch="addmm")
@op(
    kinds=UNIFIED, infer=_acc_type, evaluate=_acc, updates="acc", ulp=8, accepts=SUPPORTED,
    example=f"{_PRELUDE}acc = pl.matmul(a, bt)\np = pl.matmul_acc(acc, a, bt){_STORE}",
)  # fmt: skip
def matmul_acc(
    acc: X, lhs: X, rhs: X, a_trans: bool = False, b_trans: bool = False, init_cond: Condition | None = None
) -> X:
    """Return `acc` plus the matrix product, or the product alone where `init_cond` holds.

    The sum is valid where both are; matrices are repeated along batch axes of `acc` that they do not have. Written as a
    statement, it adds to `acc` itself. Where `acc` is a slice of a tile, the tile is added to as well. `a_trans` and
    `b_trans` are of tensors: a tile is turned, `b.T`.
    """
    ...


@op(
    kinds=TILE, infer=_bias_type, evaluate=_bias, ulp=8, accepts=SUPPORTED,
    example=f"{_PRELUDE}bias = pl.load(square, [0, 0], [1, 16])\np = pl.matmul_bias(a, bt, bias){_STORE}",
)  # fmt: skip
def matmul_bias(lhs: Tile, rhs: Tile, bias: Tile) -> Tile:
    """Return the matrix product plus the row vector `bias`."""
    ...


@called(torch="bmm")
@op(
    kinds=TILE, infer=_batch_type, evaluate=_matmul, ulp=8, accepts=SUPPORTED,
    example=f"{_PRELUDE}batch = pl.batch_matmul(pl.reshape(a, [1, 16, 32]), pl.reshape(bt, [1, 32, 16]))\n"
    f"p = pl.reshape(batch, [16, 16]){_STORE}",
)  # fmt: skip
def batch_matmul(lhs: Tile, rhs: Tile) -> Tile:
    """Return the matrix product of each pair of matrices along the leading axes."""
    ...


@op(
    kinds=TILE, infer=_acc_type, evaluate=_acc, updates="acc", ulp=8, accepts=SUPPORTED,
    example=f"{_PRELUDE}acc = pl.matmul(a, bt)\np = pl.batch_matmul_acc(acc, a, bt){_STORE}",
)  # fmt: skip
def batch_matmul_acc(acc: Tile, lhs: Tile, rhs: Tile) -> Tile:
    """Return `acc` plus the matrix product of each pair of matrices along the leading axes."""
    ...


@op(
    kinds=TILE, infer=_gemv_type, evaluate=_matmul, ulp=8, accepts=SUPPORTED,
    example=f"{_PRELUDE}{_ROW}p = pl.gemv(row, bt){_STORE}",
)  # fmt: skip
def gemv(lhs: Tile, rhs: Tile, acc_phase: str = "unspecified") -> Tile:
    """Return the row vector [1, K] times the matrix [K, N]; `acc_phase` changes no number."""
    ...


@op(
    kinds=TILE, infer=_gemv_acc_type, evaluate=_acc, updates="acc", ulp=8, accepts=SUPPORTED,
    example=f"{_PRELUDE}{_ROW}acc = pl.gemv(row, bt)\np = pl.gemv_acc(acc, row, bt){_STORE}",
)  # fmt: skip
def gemv_acc(acc: Tile, lhs: Tile, rhs: Tile, acc_phase: str = "unspecified") -> Tile:
    """Return `acc` plus the row vector [1, K] times the matrix [K, N]."""
    ...


@op(
    kinds=TILE, infer=_gemv_bias_type, evaluate=_bias, ulp=8, accepts=SUPPORTED,
    example=f"{_PRELUDE}{_ROW}bias = pl.gemv(row, bt)\np = pl.gemv_bias(row, bt, bias){_STORE}",
)  # fmt: skip
def gemv_bias(lhs: Tile, rhs: Tile, bias: Tile, acc_phase: str = "unspecified") -> Tile:
    """Return the row vector [1, K] times the matrix [K, N] plus the row vector `bias`."""
    ...
