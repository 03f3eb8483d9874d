"""Scalar arithmetic: what Python's operators mean between two numbers of a kernel."""

import builtins
import operator
from collections.abc import Callable
from typing import Any, TypeVar

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.annotations import Index, Number, Scalar
from tilewright.core.expr import Expr
from tilewright.core.extents import dtype_of
from tilewright.core.op import Interval, Kind
from tilewright.core.types import ScalarType
from tilewright.dtypes import BOOL, DataType, meet, round_scalar
from tilewright.errors import DTypeMismatchError
from tilewright.ops.declare import NUMBERS, op

__all__ = ["max", "min"]

F = TypeVar("F", bound=Callable[..., Any])
SCALAR = (Kind.SCALAR,)
_ARITHMETIC = NUMBERS | {dt.INDEX}


def common(lhs: Expr, rhs: Expr) -> DataType | None:
    """Return the type two numbers meet in, which holds both; None for uint64 and a type with a sign."""
    left, right = dtype_of(lhs), dtype_of(rhs)
    if not {left, right} <= _ARITHMETIC:
        narrow = [t for t in (left, right) if t.is_int() or t.is_float()]
        help = "convert them with pl.cast(...)" if len(narrow) == 2 else ""
        raise DTypeMismatchError(f"arithmetic needs numbers, got {left} and {right}", blame=["lhs", "rhs"], help=help)
    if left.is_float() != right.is_float():
        raise DTypeMismatchError(
            f"scalars of one category meet, got {left} and {right}",
            blame=["lhs", "rhs"],
            help="convert one with pl.cast(...)",
        )
    return meet(left, right)


def _held(lhs: Expr, rhs: Expr) -> ScalarType:
    met = common(lhs, rhs)
    if met is None:
        raise DTypeMismatchError(
            f"no type holds the numbers of both {dtype_of(lhs)} and {dtype_of(rhs)}",
            blame=["lhs", "rhs"],
            help="convert one with pl.cast(...), which keeps the bits",
        )
    return ScalarType(met)


def _shifted(lhs: Expr, rhs: Expr) -> ScalarType:
    """Return the type of a shift: of a uint64 by a signed count, or the other way round, what is shifted in 64 bits."""
    sign = dt.UNSIGNED if dtype_of(lhs).is_unsigned_int() else dt.SIGNED
    return ScalarType(common(lhs, rhs) or sign[8])


def _arithmetic(
    symbol: str,
    meaning: Callable[[Any, Any], Any],
    *,
    neutral: int | None = None,
    commutative: bool = False,
    interval: Callable[[Interval, Interval], Interval | None] | None = None,
    name: str = "",
) -> Callable[[F], F]:
    def evaluate(result: ScalarType, lhs: Any, rhs: Any) -> Any:
        return round_scalar(meaning(lhs, rhs), result.dtype)

    return op(
        kinds=SCALAR, infer=_held, evaluate=evaluate, family="scalar", symbol=symbol, control_plane=True, name=name,
        neutral=neutral, commutative=commutative, interval=interval,
    )  # fmt: skip


def _shift(symbol: str, meaning: Callable[[int, int], int]) -> Callable[[F], F]:
    def evaluate(result: ScalarType, lhs: int, rhs: int) -> Any:
        return round_scalar(meaning(lhs, rhs & (result.dtype.bits - 1)), result.dtype)

    return op(kinds=SCALAR, infer=_shifted, evaluate=evaluate, family="scalar", symbol=symbol, control_plane=True)


def _comparison(symbol: str, meaning: Callable[[Any, Any], bool]) -> Callable[[F], F]:
    def infer(lhs: Expr, rhs: Expr) -> ScalarType:
        if dtype_of(lhs) != dtype_of(rhs):
            common(lhs, rhs)
        return ScalarType(BOOL)

    def evaluate(result: ScalarType, lhs: Any, rhs: Any) -> bool:
        return bool(meaning(lhs, rhs))

    return op(kinds=SCALAR, infer=infer, evaluate=evaluate, family="scalar", symbol=symbol, control_plane=True)


def _logical(symbol: str, meaning: Callable[[Any, Any], bool]) -> Callable[[F], F]:
    def infer(lhs: Expr, rhs: Expr) -> ScalarType:
        if dtype_of(lhs) != BOOL or dtype_of(rhs) != BOOL:
            found = f"{dtype_of(lhs)} and {dtype_of(rhs)}"
            raise DTypeMismatchError(
                f"`{symbol}` joins two conditions, got {found}", blame=["lhs", "rhs"], help="compare first"
            )
        return ScalarType(BOOL)

    def evaluate(result: ScalarType, lhs: bool, rhs: bool) -> bool:
        return bool(meaning(lhs, rhs))

    return op(kinds=SCALAR, infer=infer, evaluate=evaluate, family="scalar", symbol=symbol, control_plane=True)


def _divide(lhs: Any, rhs: Any) -> Any:
    if isinstance(lhs, int) and isinstance(rhs, int):
        magnitude = abs(lhs) // abs(rhs)
        return magnitude if (lhs < 0) == (rhs < 0) else -magnitude
    return _ieee(np.divide, lhs, rhs)


def _floor_divide(lhs: Any, rhs: Any) -> Any:
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs // rhs
    return _ieee(np.floor_divide, lhs, rhs)


def _modulo(lhs: Any, rhs: Any) -> Any:
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs % rhs
    return _ieee(np.mod, lhs, rhs)


def _ieee(meaning: Callable[[float, float], Any], lhs: Any, rhs: Any) -> float:
    """Return a float operation's result, infinite or NaN where Python would raise."""
    with np.errstate(all="ignore"):
        return float(meaning(float(lhs), float(rhs)))


def _smaller(lhs: Any, rhs: Any) -> Any:
    return lhs if lhs < rhs or lhs != lhs else rhs


def _larger(lhs: Any, rhs: Any) -> Any:
    return lhs if lhs > rhs or lhs != lhs else rhs


def _least(lhs: Interval, rhs: Interval) -> Interval:
    return builtins.min(lhs[0], rhs[0]), builtins.min(lhs[1], rhs[1])


def _greatest(lhs: Interval, rhs: Interval) -> Interval:
    return builtins.max(lhs[0], rhs[0]), builtins.max(lhs[1], rhs[1])


def _products(lhs: Interval, rhs: Interval) -> Interval:
    ends = [a * b for a in lhs for b in rhs]
    return builtins.min(ends), builtins.max(ends)


def _quotients(divide: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval | None]:
    """Return how far quotients by positive numbers reach."""

    def interval(lhs: Interval, rhs: Interval) -> Interval | None:
        ends = [divide(a, b) for a in lhs for b in rhs] if rhs[0] > 0 else []
        return (builtins.min(ends), builtins.max(ends)) if ends else None

    return interval


def _remainders(lhs: Interval, rhs: Interval) -> Interval | None:
    """Return how far remainders by positive numbers reach."""
    if rhs[0] <= 0:
        return None
    if lhs[0] < 0:
        return 0, rhs[1] - 1
    return lhs if lhs[1] < rhs[0] else (0, builtins.min(lhs[1], rhs[1] - 1))


def _same(value: Expr) -> ScalarType:
    if dtype_of(value) in (BOOL, dt.TASK_ID):
        raise DTypeMismatchError(f"arithmetic needs a number, got {dtype_of(value)}", blame=["value"])
    return ScalarType(dtype_of(value))


def _condition(value: Expr) -> ScalarType:
    if dtype_of(value) != BOOL:
        raise DTypeMismatchError(
            f"`not` negates a condition, got {dtype_of(value)}", blame=["value"], help="compare first"
        )
    return ScalarType(BOOL)


def _unary(symbol: str, infer: Callable[[Expr], ScalarType], meaning: Callable[[Any], Any]) -> Callable[[F], F]:
    def evaluate(result: ScalarType, value: Any) -> Any:
        return round_scalar(meaning(value), result.dtype)

    return op(kinds=SCALAR, infer=infer, evaluate=evaluate, family="scalar", symbol=symbol, control_plane=True)


@_arithmetic("+", operator.add, neutral=0, commutative=True, interval=lambda a, b: (a[0] + b[0], a[1] + b[1]))
def add(lhs: Number, rhs: Number) -> Scalar:
    """Return the sum of two numbers."""
    ...


@_arithmetic("-", operator.sub, neutral=0, interval=lambda a, b: (a[0] - b[1], a[1] - b[0]))
def sub(lhs: Number, rhs: Number) -> Scalar:
    """Return the difference of two numbers."""
    ...


@_arithmetic("*", operator.mul, neutral=1, commutative=True, interval=_products)
def mul(lhs: Number, rhs: Number) -> Scalar:
    """Return the product of two numbers."""
    ...


@_arithmetic("/", _divide, interval=_quotients(_divide))
def div(lhs: Number, rhs: Number) -> Scalar:
    """Return the quotient of two numbers in their own type; integers drop the fraction."""
    ...


@_arithmetic("//", _floor_divide, neutral=1, interval=_quotients(_floor_divide))
def floordiv(lhs: Number, rhs: Number) -> Scalar:
    """Return the quotient of two numbers, rounded down."""
    ...


@_arithmetic("%", _modulo, interval=_remainders)
def mod(lhs: Number, rhs: Number) -> Scalar:
    """Return the remainder of two numbers, with the sign of the divisor."""
    ...


@_shift("<<", lambda value, count: value << count)
def shl(lhs: Index, rhs: Index) -> Scalar:
    """Return `lhs` shifted left by `rhs` bits; the count is taken modulo the width."""
    ...


@_shift(">>", lambda value, count: value >> count)
def shr(lhs: Index, rhs: Index) -> Scalar:
    """Return `lhs` shifted right by `rhs` bits, keeping its sign; the count is taken modulo the width."""
    ...


@_arithmetic("&", lambda a, b: a & b, commutative=True)
def bit_and(lhs: Index, rhs: Index) -> Scalar:
    """Return the bits both integers have."""
    ...


@_arithmetic("|", lambda a, b: a | b, commutative=True)
def bit_or(lhs: Index, rhs: Index) -> Scalar:
    """Return the bits either integer has."""
    ...


@_arithmetic("^", lambda a, b: a ^ b, commutative=True)
def bit_xor(lhs: Index, rhs: Index) -> Scalar:
    """Return the bits exactly one integer has."""
    ...


@_arithmetic("", _smaller, commutative=True, interval=_least)
def min(lhs: Number, rhs: Number) -> Scalar:
    """Return the smaller of two numbers; NaN wins, and of two zeros the second."""
    ...


@_arithmetic("", _larger, commutative=True, interval=_greatest)
def max(lhs: Number, rhs: Number) -> Scalar:
    """Return the larger of two numbers; NaN wins, and of two zeros the second."""
    ...


@_comparison("==", operator.eq)
def eq(lhs: Number, rhs: Number) -> Scalar:
    """Return whether two numbers are equal."""
    ...


@_comparison("!=", operator.ne)
def ne(lhs: Number, rhs: Number) -> Scalar:
    """Return whether two numbers differ."""
    ...


@_comparison("<", operator.lt)
def lt(lhs: Number, rhs: Number) -> Scalar:
    """Return whether `lhs` is less than `rhs`."""
    ...


@_comparison("<=", operator.le)
def le(lhs: Number, rhs: Number) -> Scalar:
    """Return whether `lhs` is at most `rhs`."""
    ...


@_comparison(">", operator.gt)
def gt(lhs: Number, rhs: Number) -> Scalar:
    """Return whether `lhs` is greater than `rhs`."""
    ...


@_comparison(">=", operator.ge)
def ge(lhs: Number, rhs: Number) -> Scalar:
    """Return whether `lhs` is at least `rhs`."""
    ...


@_logical("and", lambda a, b: a and b)
def and_(lhs: Number, rhs: Number) -> Scalar:
    """Return whether both conditions hold; both are evaluated."""
    ...


@_logical("or", lambda a, b: a or b)
def or_(lhs: Number, rhs: Number) -> Scalar:
    """Return whether either condition holds; both are evaluated."""
    ...


@_unary("-", _same, operator.neg)
def neg(value: Number) -> Scalar:
    """Return the negated number."""
    ...


@_unary("~", _same, lambda value: ~value)
def invert(value: Index) -> Scalar:
    """Return the integer with every bit flipped."""
    ...


@_unary("not", _condition, operator.not_)
def not_(value: Number) -> Scalar:
    """Return whether the condition does not hold."""
    ...
