"""Broadcasts: a column vector met with every column of a tile, a row vector with every row."""

from collections.abc import Callable
from typing import Any, TypeVar

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.access import Access, touch
from tilewright.core.annotations import Number, Tensor, Tile, X
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.op import Effect, Undefined
from tilewright.core.region import Array, Region, embed, exact
from tilewright.core.types import ShapedType, TensorType, TileType, show_shape
from tilewright.dtypes import promote, round_to
from tilewright.errors import DTypeMismatchError, ExecutionError, ShapeMismatchError
from tilewright.ops.declare import FLOATS, NUMBERS, TENSOR, UNIFIED, op
from tilewright.ops.families import apply, check_dtype, computed, elementwise_dtype, shaped

__all__ = [
    "col_expand", "col_expand_add", "col_expand_div", "col_expand_expdif", "col_expand_max", "col_expand_min",
    "col_expand_mul", "col_expand_sub", "expand_clone", "expands", "row_expand", "row_expand_add", "row_expand_div",
    "row_expand_expdif", "row_expand_max", "row_expand_min", "row_expand_mul", "row_expand_sub",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
ROW, COLUMN = -1, -2


def expansion(
    axis: int,
    reference: Callable[[Array, Array], Array],
    ulp: float = 0,
    floats: bool = False,
    domain: tuple[float, float] = (-8.0, 8.0),
    unread: tuple[str, ...] = (),
    packed: bool = False,
) -> Callable[[F], F]:
    """Declare an op between a tile and a vector that is one element wide along `axis`.

    A `packed` op also takes rows of 32 bytes instead of that one element, which are repeated.
    """
    accepted = FLOATS if floats else NUMBERS

    def infer(x: Expr, vec: Expr, **_: Any) -> ShapedType:
        dtype = elementwise_dtype({"x": x, "vec": vec})
        check_dtype(dtype, accepted, ["x", "vec"])
        if not (packed and is_packed(shaped(x), shaped(vec))):
            _check_vector(axis, shaped(x), shaped(vec))
        return computed(shaped(x), shaped(x).shape, shaped(x).valid, dtype)

    def evaluate(result: ShapedType, x: Region, vec: Region, **_: Any) -> Region:
        vec = _repeated(vec, x) if vec.data.shape[-1] > 1 and axis == ROW else vec
        return apply(reference, result.dtype, result.dtype, [x, vec], [x] if "x" in unread else [])

    return op(
        kinds=UNIFIED, infer=infer, evaluate=evaluate, family="expansion", reference=reference, accepts=accepted,
        ulp=ulp, domain=domain, example=_EXAMPLES[axis], undefined=Undefined.SPREADS, unread=unread,
        also={"x": ("tile", "target"), "vec": ("row_vec",) if axis == ROW else ("col_vec",)},
    )  # fmt: skip


_EXAMPLES = {
    ROW: "out = pl.store(pl.{name}(a, pl.row_max(b)), [0, 0], out)",
    COLUMN: "out = pl.store(pl.{name}(a, pl.col_max(b)), [0, 0], out)",
}


def _check_vector(axis: int, target: ShapedType, vector: ShapedType) -> None:
    wanted = list(target.shape)
    if len(wanted) >= 2:
        wanted[axis] = 1
    if len(wanted) < 2 or vector.shape != tuple(wanted):
        noun = "column" if axis == ROW else "row"
        needs = f"{show_shape(target.shape)} needs a {noun} vector of shape {show_shape(tuple(wanted))}"
        raise ShapeMismatchError(f"{needs}, got {show_shape(vector.shape)}", blame=["x", "vec"])


PACKED = frozenset((dt.INT8, dt.INT16, dt.INT32, dt.FP16, dt.FP32))
"""The element types of rows of 32 bytes."""


def is_packed(target: ShapedType, vector: ShapedType) -> bool:
    """Return whether a row operand is rows of 32 bytes; ShapeMismatchError where it is such rows, but not right."""
    width = 32 // vector.dtype.get_byte()
    if not isinstance(target, TileType) or len(target.shape) != 2 or 1 in (width, target.shape[-1]):
        return False
    if vector.shape != (target.shape[0], width) or vector.dtype not in PACKED:
        return False
    rows, columns = vector.valid
    differ = isinstance(rows, int) and isinstance(target.valid[0], int) and rows != target.valid[0]
    if vector.dtype != target.dtype or differ or columns not in (1, width):
        needed = f"{target.dtype} elements, the rows of {target}, and one column or all {width} valid"
        raise ShapeMismatchError(f"rows of 32 bytes need {needed}, got {vector}", blame=["x", "vec"])
    return True


def _repeated(vec: Region, x: Region) -> Region:
    """Return the valid part of each row again and again, as far as another region reaches."""
    width = x.data.shape[-1]
    columns = [column % max(vec.valid[-1], 1) for column in range(width)]
    return vec.moved(lambda array: array[..., columns], (*vec.valid[:-1], width))


def _second(x: Array, vec: Array) -> Array:
    return np.broadcast_to(vec, x.shape)


def _quotient(x: Array, vec: Array) -> Array:
    return x / vec


def _expdif(x: Array, vec: Array) -> Array:
    return np.exp(x - vec)


def _clone_type(src: Expr, target: Expr) -> TensorType:
    source, into = shaped(src), shaped(target)
    assert isinstance(into, TensorType)
    if len(source.shape) != 3 or len(into.shape) != 3:
        raise ShapeMismatchError(f"expand_clone takes 3-D tensors, got {source} and {into}", blame=["src", "target"])
    axes = [(have, want) for have, want in zip(source.shape, into.shape, strict=True) if have != want]
    if any(isinstance(have, int) and isinstance(want, int) and have != 1 for have, want in axes):
        raise ShapeMismatchError(f"{source} cannot be repeated to fill {into}", blame=["src", "target"], help=REPEATED)
    if sum(have == 1 and want != 1 for have, want in axes) > 1:
        raise ShapeMismatchError(f"{source} would be repeated along two axes", blame=["src", "target"], help=REPEATED)
    if promote(source.dtype, into.dtype) != into.dtype:
        raise DTypeMismatchError(
            f"{source.dtype} elements cannot go into {into.dtype}",
            blame=["src", "target"],
            help=f"convert: pl.cast(src, pl.{into.dtype.symbol})",
        )
    return into


REPEATED = "all axes agree but one, which has one element in `src`"


def _clone(result: TensorType, src: Region, target: Region) -> Region:
    pairs = list(zip(src.data.shape, target.data.shape, strict=True))
    if any(have not in (1, want) for have, want in pairs):
        message = f"{list(src.data.shape)} cannot be repeated to fill {list(target.data.shape)}"
        raise ExecutionError(message, help=REPEATED)
    box = [want if have == 1 else valid for (have, want), valid in zip(pairs, src.valid, strict=True)]
    touch(Access.READ, src.live)
    window = tuple(slice(0, extent) for extent in box)
    touch(Access.WRITE, target.data[window])
    target.data[window] = round_to(np.broadcast_to(exact(np.array(src.seen())), box), result.dtype)
    target.brighten(window)
    return target


def _expands_type(target: Expr, scalar: Expr) -> ShapedType:
    check_dtype(elementwise_dtype({"target": target, "scalar": scalar}), NUMBERS, ["target"])
    return computed(shaped(target), shaped(target).shape, shaped(target).valid, shaped(target).dtype)


def _expands(result: ShapedType, target: Region, scalar: Any) -> Region:
    return embed(np.full(target.valid, scalar), target.data.shape, result.dtype)


@expansion(ROW, _second, unread=("x",))
def row_expand(x: X, vec: X) -> X:
    """Return the column vector `vec` repeated along every row of a tile shaped like `x`."""
    ...


@expansion(ROW, lambda x, vec: x + vec, packed=True)
def row_expand_add(x: X, vec: X, tmp: Tile | None = None) -> X:
    """Return `x` plus the column vector `vec`, row by row.

    Rows of 32 bytes in place of a column are repeated from left to right; where only their first column is valid, that
    is the vector.
    """
    ...


@expansion(ROW, lambda x, vec: x - vec)
def row_expand_sub(x: X, vec: X) -> X:
    """Return `x` minus the column vector `vec`, row by row."""
    ...


@expansion(ROW, lambda x, vec: x * vec)
def row_expand_mul(x: X, vec: X) -> X:
    """Return `x` times the column vector `vec`, row by row."""
    ...


@expansion(ROW, _quotient, floats=True, ulp=2, domain=(0.5, 8.0))
def row_expand_div(x: X, vec: X) -> X:
    """Return `x` divided by the column vector `vec`, row by row."""
    ...


@expansion(ROW, lambda x, vec: np.maximum(x, vec))
def row_expand_max(x: X, vec: X) -> X:
    """Return the larger of `x` and the column vector `vec`, row by row."""
    ...


@expansion(ROW, lambda x, vec: np.minimum(x, vec))
def row_expand_min(x: X, vec: X) -> X:
    """Return the smaller of `x` and the column vector `vec`, row by row."""
    ...


@expansion(ROW, _expdif, floats=True, ulp=4)
def row_expand_expdif(x: X, vec: X) -> X:
    """Return e to the power of `x` minus the column vector `vec`, row by row."""
    ...


@expansion(COLUMN, _second, unread=("x",))
def col_expand(x: X, vec: X) -> X:
    """Return the row vector `vec` repeated along every column of a tile shaped like `x`."""
    ...


@expansion(COLUMN, lambda x, vec: x + vec)
def col_expand_add(x: X, vec: X) -> X:
    """Return `x` plus the row vector `vec`, column by column."""
    ...


@expansion(COLUMN, lambda x, vec: x - vec)
def col_expand_sub(x: X, vec: X) -> X:
    """Return `x` minus the row vector `vec`, column by column."""
    ...


@expansion(COLUMN, lambda x, vec: x * vec)
def col_expand_mul(x: X, vec: X) -> X:
    """Return `x` times the row vector `vec`, column by column."""
    ...


@expansion(COLUMN, _quotient, floats=True, domain=(0.5, 8.0))
def col_expand_div(x: X, vec: X) -> X:
    """Return `x` divided by the row vector `vec`, column by column."""
    ...


@expansion(COLUMN, lambda x, vec: np.maximum(x, vec))
def col_expand_max(x: X, vec: X) -> X:
    """Return the larger of `x` and the row vector `vec`, column by column."""
    ...


@expansion(COLUMN, lambda x, vec: np.minimum(x, vec))
def col_expand_min(x: X, vec: X) -> X:
    """Return the smaller of `x` and the row vector `vec`, column by column."""
    ...


@expansion(COLUMN, _expdif, floats=True, ulp=4)
def col_expand_expdif(x: X, vec: X) -> X:
    """Return e to the power of `x` minus the row vector `vec`, column by column."""
    ...


@called(numpy="broadcast_to", torch="Tensor.expand", triton="broadcast_to")
@op(
    kinds=TENSOR, infer=_clone_type, evaluate=_clone, effect=Effect.WRITE, alias="target", writes="target",
    example="row = pl.reshape(pl.slice(x, [1, 32], [0, 0]), [1, 1, 32])\n"
    "filled = pl.expand_clone(row, pl.reshape(out, [1, 16, 32]))",
)  # fmt: skip
def expand_clone(src: Tensor, target: Tensor) -> Tensor:
    """Fill `target` with `src`, repeated along the one axis that has one element there; return `target`."""
    ...


@op(
    kinds=UNIFIED, infer=_expands_type, evaluate=_expands, undefined=Undefined.SPREADS, unread=("target",),
    example="out = pl.store(pl.expands(a, 0.5), [0, 0], out)",
)  # fmt: skip
def expands(target: X, scalar: Number) -> X:
    """Return a tile shaped like `target` all of whose elements are `scalar`."""
    ...
