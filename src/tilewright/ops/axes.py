"""Axes: values folded along some of their axes, or all of them. Only the valid part takes part.

`axis` is one axis, a tuple of them, or None for all, counted from either end. Folded axes are dropped unless
`keepdims`; where all are dropped, the result is a number. Folding nothing gives what its op starts with.
"""

import builtins
import math
from typing import Any, TypeAlias

from tilewright.core.annotations import X
from tilewright.core.expr import Const, Expr
from tilewright.core.foreign_names import called
from tilewright.core.types import ScalarType, Shape, is_fully_valid
from tilewright.dtypes import BOOL, INT32
from tilewright.errors import AttributeValueError, OutOfBoundsError, ShapeMismatchError
from tilewright.ops.declare import NUMBERS
from tilewright.ops.derived import Writing, cast, derived, extents, float_type, on, widened
from tilewright.ops.families import shaped

__all__ = ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum", "var"]

COUNTED = NUMBERS | {BOOL}
"""Elements that are summed: those of masks count as ones and zeros."""

Axis: TypeAlias = int | tuple[int, ...] | None


def axes_of(x: Expr, axis: Any) -> tuple[int, ...]:
    """Return axes counted from the end, the last one first; raise where some do not exist or are named twice."""
    rank = len(shaped(x).shape)
    named: Any = tuple(range(rank)) if axis is None else axis
    given: Any = named if type(named) in (tuple, list) else (named,)
    found: list[int] = []
    for each in given:
        number: Any = each.value if isinstance(each, Const) else each
        if not isinstance(number, int) or isinstance(number, bool):
            help = "axis=-1 is the last axis; a tuple names several, None all of them"
            raise AttributeValueError(f"an axis is an integer, got {number!r}", blame=["axis"], help=help)
        if not -rank <= number < rank:
            help = f"axes are 0 to {rank - 1}, or -{rank} to -1 from the end"
            raise OutOfBoundsError(f"axis {number} of {shaped(x)} does not exist", blame=["axis"], help=help)
        found.append(number % rank - rank)
    if len(set(found)) < len(found):
        raise AttributeValueError(f"an axis is named twice: {axis}", blame=["axis"], help="name each axis once")
    return tuple(sorted(found, reverse=True))


def one_axis(x: Expr, axis: Any) -> int:
    """Return an axis counted from the end; raise where it is none or several."""
    found = axes_of(x, axis)
    if axis is None or len(found) != 1:
        help = "axis=-1 is the last axis"
        raise AttributeValueError(f"one axis is needed here, got {axis}", blame=["axis"], help=help)
    return found[0]


def along(w: Writing, name: str, x: Expr, axis: int, **given: Any) -> Expr:
    """Return rows or columns folded by `row_name` or `col_name`; other axes take the place of the columns."""
    if axis >= -2:
        return w.do(f"{on(x)}.{'row' if axis == -1 else 'col'}_{name}", x=x, **given)
    turned = w.do(f"{on(x)}.transpose", x=x, axis1=axis, axis2=-2)
    return w.do(f"{on(x)}.transpose", x=w.do(f"{on(x)}.col_{name}", x=turned, **given), axis1=axis, axis2=-2)


def folded(w: Writing, name: str, x: Expr, axes: tuple[int, ...]) -> Expr:
    """Return a value folded along axes, which keep one element."""
    for axis in axes:
        x = along(w, name, x, axis)
    return x


def dropped(w: Writing, x: Expr, axes: tuple[int, ...], keepdims: bool) -> Expr:
    """Return a folded value without its folded axes: a number where none are left."""
    rank = len(shaped(x).shape)
    if keepdims:
        return x
    if len(axes) == rank:
        return w.do(f"{on(x)}.read", x=x, indices=(0,) * rank)
    kept = [extent for axis, extent in enumerate(extents(w, x)) if axis - rank not in axes]
    return w.do(f"{on(x)}.reshape", x=x, shape=tuple(kept))


def counted(w: Writing, x: Expr) -> Expr:
    """Return a mask as ones and zeros of int32; anything else is itself."""
    return w.do(f"{on(x)}.where", condition=x, x=1, y=0) if shaped(x).dtype == BOOL else x


def _sum(name: str) -> Any:
    def expand(w: Writing, x: Expr, axis: Axis, keepdims: bool) -> Expr:
        axes, x = axes_of(x, axis), counted(w, x)
        return dropped(w, cast(w, folded(w, name, widened(w, x), axes), shaped(x).dtype), axes, keepdims)

    return expand


def _extreme(name: str) -> Any:
    """Return the expansion of `max` or `min`, which of masks is `any` or `all`."""

    def expand(w: Writing, x: Expr, axis: Axis, keepdims: bool) -> Expr:
        if shaped(x).dtype == BOOL:
            return _decided(name)(w, x, axis, keepdims)
        axes = axes_of(x, axis)
        return dropped(w, folded(w, name, x, axes), axes, keepdims)

    return expand


def _decided(name: str) -> Any:
    def expand(w: Writing, x: Expr, axis: Axis, keepdims: bool) -> Expr:
        axes = axes_of(x, axis)
        mask = x if shaped(x).dtype == BOOL else w.do(f"{on(x)}.ne", lhs=x, rhs=0)
        result = dropped(w, folded(w, name, counted(w, mask), axes), axes, keepdims)
        kind = "scalar" if isinstance(result.type, ScalarType) else on(result)
        return w.do(f"{kind}.gt", lhs=result, rhs=0)

    return expand


def divided(w: Writing, total: Expr, x: Expr, axes: tuple[int, ...], less: float = 0) -> Expr:
    """Return sums along axes of a value divided by the number of their terms, which is valid elements, less some."""
    valid: Shape = tuple(shaped(x).valid[axis] for axis in axes)
    known = [extent for extent in valid if isinstance(extent, int)]
    if len(known) == len(valid):
        return w.do(f"{on(x)}.div", lhs=total, rhs=float(builtins.max(math.prod(known) - less, 0)))
    ones = w.do(f"{on(x)}.expands", target=x, scalar=1.0)
    count = folded(w, "sum", ones, axes)
    if less:
        count = w.do(f"{on(x)}.maximum", lhs=w.do(f"{on(x)}.sub", lhs=count, rhs=float(less)), rhs=0.0)
    return w.do(f"{on(x)}.div", lhs=total, rhs=count)


def _mean(w: Writing, x: Expr, axis: Axis, keepdims: bool) -> Expr:
    axes, exact = axes_of(x, axis), widened(w, counted(w, x), counts=True)
    result = divided(w, folded(w, "sum", exact, axes), exact, axes)
    return dropped(w, cast(w, result, float_type(shaped(x))), axes, keepdims)


def _var(w: Writing, x: Expr, axis: Axis, correction: Any, keepdims: bool) -> Expr:
    number = correction.value if isinstance(correction, Const) else correction
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        help = "1 makes it the variance of what the elements are a sample of, 0 that of the elements"
        raise AttributeValueError(f"correction is a number, got {number!r}", blame=["correction"], help=help)
    axes, exact = axes_of(x, axis), widened(w, x, counts=True)
    center = divided(w, folded(w, "sum", exact, axes), exact, axes)
    apart = w.do(f"{on(x)}.sub", lhs=exact, rhs=center)
    squares = folded(w, "sum", w.do(f"{on(x)}.mul", lhs=apart, rhs=apart), axes)
    result = divided(w, squares, exact, axes, number)
    return dropped(w, cast(w, result, float_type(shaped(x))), axes, keepdims)


def _position(name: str) -> Any:
    def expand(w: Writing, x: Expr, axis: int | None, keepdims: bool) -> Expr:
        x = counted(w, x)
        if axis is None:
            place = _place(w, name, x)
            shape = (1,) * len(shaped(x).shape)
            return w.do(f"{on(x)}.full", shape=shape, dtype=INT32, value=place) if keepdims else place
        found = one_axis(x, axis)
        return dropped(w, _positions(w, name, x, found), (found,), keepdims)

    return expand


def _positions(w: Writing, name: str, x: Expr, axis: int) -> Expr:
    if on(x) == "tensor":
        return along(w, f"arg{name}", x, axis)
    if axis < -2:
        turned = w.do("tile.transpose", x=x, axis1=axis, axis2=-2)
        return w.do("tile.transpose", x=_positions(w, name, turned, -2), axis1=axis, axis2=-2)
    scratch = w.do("tile.create", shape=shaped(x).shape, dtype=shaped(x).dtype)
    return along(w, f"arg{name}", x, axis, tmp_tile=scratch)


def _place(w: Writing, name: str, x: Expr) -> Expr:
    """Return where in all of a value the element is, counted row by row through its shape."""
    type_ = shaped(x)
    rank, size = len(type_.shape), math.prod(extent for extent in type_.shape if isinstance(extent, int))
    if rank > 2 and not (is_fully_valid(type_) and builtins.all(isinstance(extent, int) for extent in type_.shape)):
        help = "name an axis, one after the other"
        raise ShapeMismatchError(f"a place in a partly valid {type_} takes two axes at most", blame=["x"], help=help)
    if rank > 2:
        x = w.do(f"{on(x)}.reshape", x=x, shape=(1, size))
    columns = _positions(w, name, x, -1)
    if rank == 1:
        return w.do(f"{on(x)}.read", x=columns, indices=(0,))
    rows = _positions(w, name, along(w, name, x, -1), -2)
    row = w.do(f"{on(x)}.read", x=rows, indices=(0, 0))
    column = w.do(f"{on(x)}.read", x=columns, indices=(row, 0))
    return w.do("scalar.add", lhs=w.do("scalar.mul", lhs=row, rhs=extents(w, x)[1]), rhs=column)


_EXAMPLE = "out = pl.store(a * pl.{name}(a, axis=-1, keepdims=True), [0, 0], out)"
_DECIDED = "out = pl.store(pl.where(pl.{name}(a > 1.0, axis=-1, keepdims=True), a, b), [0, 0], out)"
_PLACES = (
    "columns = pl.{name}(a, axis=1)\nout = pl.store(a * pl.cast(pl.reshape(columns, [16, 1]), pl.FP32), [0, 0], out)"
)


@called("numpy torch triton")
@derived(_sum("sum"), accepts=COUNTED, ulp=4, example=_EXAMPLE)
def sum(x: X, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> X:
    """Return the sum of the elements along one axis, some, or all, in which case it is a number.

    Integers keep their type and wrap; short floats are added in fp32. Of a mask it is how many are True, as int32.
    """
    ...


@called("numpy torch")
@derived(_sum("prod"), accepts=COUNTED, ulp=8, example=_EXAMPLE)
def prod(x: X, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> X:
    """Return the product of the elements along one axis, some, or all, in which case it is a number.

    Integers keep their type and wrap; short floats are multiplied in fp32, whose range products of some of them may
    leave before all do. Of a mask it is 0 or 1, as int32.
    """
    ...


@called("numpy torch triton", numpy="amax", torch="amax", triton="reduce")
@derived(_extreme("max"), accepts=COUNTED, example=_EXAMPLE)
def max(x: X, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> X:
    """Return the largest element along one axis, some, or all, in which case it is a number; NaN is larger than all.

    Of a mask it is what `any` gives, of zeros of both signs either. Of two numbers, as in `pl.max(a, b)`, it is the
    larger one.
    """
    ...


@called("numpy torch triton", numpy="amin", torch="amin")
@derived(_extreme("min"), accepts=COUNTED, example=_EXAMPLE)
def min(x: X, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> X:
    """Return the smallest element along one axis, some, or all, in which case it is a number; NaN is smaller than all.

    Of a mask it is what `all` gives, of zeros of both signs either. Of two numbers, as in `pl.min(a, b)`, it is the
    smaller one.
    """
    ...


@called("numpy torch")
@derived(_mean, accepts=COUNTED, ulp=6, example=_EXAMPLE)
def mean(x: X, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> X:
    """Return the mean of the elements along one axis, some, or all, in which case it is a number.

    Integers become fp32, as do masks, of which it is the share that is True. The mean of nothing is NaN.
    """
    ...


@called("numpy torch")
@derived(_var, ulp=16, example=_EXAMPLE)
def var(x: X, axis: int | tuple[int, ...] | None = None, correction: float = 1, keepdims: bool = False) -> X:
    """Return the variance of the elements along one axis, some, or all, in which case it is a number.

    The squares are divided by the number of elements less the `correction`, which is 1 as in torch and 0 in NumPy.
    Integers become fp32.
    """
    ...


@called("numpy torch triton")
@derived(_position("max"), accepts=COUNTED, example=_PLACES)
def argmax(x: X, axis: int | None = None, keepdims: bool = False) -> X:
    """Return where along an axis the first largest element is, or the first NaN, as int32.

    Without an axis it is a number: the place in all of `x`, counted row by row through its shape.
    """
    ...


@called("numpy torch triton")
@derived(_position("min"), accepts=COUNTED, example=_PLACES)
def argmin(x: X, axis: int | None = None, keepdims: bool = False) -> X:
    """Return where along an axis the first smallest element is, or the first NaN, as int32.

    Without an axis it is a number: the place in all of `x`, counted row by row through its shape.
    """
    ...


@called("numpy torch")
@derived(_decided("max"), accepts=COUNTED, example=_DECIDED)
def any(x: X, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> X:
    """Return whether some element is True along one axis, some, or all, in which case it is a condition.

    Numbers other than zero count as True, NaN among them. Of nothing it is False.
    """
    ...


@called("numpy torch")
@derived(_decided("min"), accepts=COUNTED, example=_DECIDED)
def all(x: X, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> X:
    """Return whether every element is True along one axis, some, or all, in which case it is a condition.

    Numbers other than zero count as True, NaN among them. Of nothing it is True.
    """
    ...
