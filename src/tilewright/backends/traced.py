"""Traced elements: what a back end computes an op's NumPy meaning on.

An op's reference is its recipe: applied to traced elements instead of arrays, every NumPy function and operator in it
emits what computes it. A back end says what a function emits; which functions an operator stands for is said here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.arrays import np
from tilewright.dtypes import DataType
from tilewright.errors import InternalError

if TYPE_CHECKING:
    from typing_extensions import Self


class Traced(ABC):
    """Elements being computed, all of one type."""

    element: DataType

    @property
    def dtype(self) -> Any:
        """The NumPy type a reference would see: floats are exact there."""
        return np.dtype("float64") if self.element.is_float() else self.element.numpy

    def astype(self, dtype: Any) -> Self:
        """Return the elements as they are: a reference only asks for a type that they meet."""
        return self

    @abstractmethod
    def like(self, number: Any) -> Self:
        """Return a number as elements of the same type."""

    @abstractmethod
    def emitter(self, name: str) -> Callable[..., Self]:
        """Return what emits a NumPy function, by its name; an error of the back end's where nothing does."""

    def ufunc(self, name: str, inputs: Sequence[Any]) -> Self:
        """Emit a NumPy function of elements and numbers, by its name."""
        return self.emitter(name)(*(i if isinstance(i, Traced) else self.like(i) for i in inputs))

    def function(self, name: str, args: Sequence[Any]) -> Self:
        """Emit one of the few NumPy functions that are no ufuncs."""
        return self.emitter(name)(*args)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Self:
        """Emit a ufunc, or a function of Python that NumPy applies to each element."""
        if method != "__call__":
            raise InternalError(f"no instructions for np.{ufunc.__name__}.{method}")
        return self.ufunc(ufunc.__name__.removesuffix(" (vectorized)"), inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Self:
        """Emit another function of NumPy's."""
        return self.function(function.__name__, args)

    # fmt: off
    def __add__(self, other: Any) -> Self: return self.ufunc("add", (self, other))
    def __radd__(self, other: Any) -> Self: return self.ufunc("add", (other, self))
    def __sub__(self, other: Any) -> Self: return self.ufunc("subtract", (self, other))
    def __rsub__(self, other: Any) -> Self: return self.ufunc("subtract", (other, self))
    def __mul__(self, other: Any) -> Self: return self.ufunc("multiply", (self, other))
    def __rmul__(self, other: Any) -> Self: return self.ufunc("multiply", (other, self))
    def __truediv__(self, other: Any) -> Self: return self.ufunc("divide", (self, other))
    def __rtruediv__(self, other: Any) -> Self: return self.ufunc("divide", (other, self))
    def __floordiv__(self, other: Any) -> Self: return self.ufunc("floor_divide", (self, other))
    def __and__(self, other: Any) -> Self: return self.ufunc("bitwise_and", (self, other))
    def __or__(self, other: Any) -> Self: return self.ufunc("bitwise_or", (self, other))
    def __xor__(self, other: Any) -> Self: return self.ufunc("bitwise_xor", (self, other))
    def __invert__(self) -> Self: return self.ufunc("invert", (self,))
    def __neg__(self) -> Self: return self.ufunc("negative", (self,))
    def __lt__(self, other: Any) -> Self: return self.ufunc("less", (self, other))
    def __le__(self, other: Any) -> Self: return self.ufunc("less_equal", (self, other))
    def __gt__(self, other: Any) -> Self: return self.ufunc("greater", (self, other))
    def __ge__(self, other: Any) -> Self: return self.ufunc("greater_equal", (self, other))
    def __eq__(self, other: Any) -> Self: return self.ufunc("equal", (self, other))  # pyright: ignore[reportIncompatibleMethodOverride]
    def __ne__(self, other: Any) -> Self: return self.ufunc("not_equal", (self, other))  # pyright: ignore[reportIncompatibleMethodOverride]
    # fmt: on
    __hash__ = object.__hash__


T = TypeVar("T", bound=Traced)


def exact_exp(plain: T, x: T, difference: tuple[T, T]) -> T:
    """Return the exponential of a difference, from that of its rounded value: with what the rounding lost."""
    a, b = difference
    back = x - a
    lost = (a - (x - back)) - (b + back)
    return plain * (x.function("where", (x.ufunc("absolute", (lost,)) < 1, lost, 0)) + 1)


def predicate(name: str, a: Traced, b: Traced, ordered: str = "o") -> str:
    """Return how LLVM and MLIR call a comparison of elements, by what those are."""
    if a.element.is_float():
        return ordered + name
    return (
        name
        if name in ("eq", "ne")
        else f"{'s' if a.element.is_signed_int() and b.element.is_signed_int() else 'u'}{name}"
    )


def _is_infinite(a: Traced) -> Traced:
    return a.ufunc("absolute", (a,)) == float("inf") if a.element.is_float() else a != a


def _is_finite(a: Traced) -> Traced:
    return a.ufunc("absolute", (a,)) < float("inf") if a.element.is_float() else a == a


def _unchanged(a: Traced, *_: object) -> Traced:
    return a


DERIVED: dict[str, Callable[[Any], Any]] = {
    "invert": lambda a: a ^ -1,
    "isnan": lambda a: a != a,
    "isinf": _is_infinite,
    "isfinite": _is_finite,
    "zeros_like": lambda a: a.like(0),
    "ones_like": lambda a: a.like(1),
    "broadcast_to": _unchanged,
}
"""The functions that are others of every back end's."""
