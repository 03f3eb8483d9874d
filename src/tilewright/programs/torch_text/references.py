"""References in torch text: the meaning of one element, in NumPy functions, written down in torch's.

A reference is applied to text instead of arrays, and every NumPy function in it becomes a call of torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.arrays import np
from tilewright.dtypes import DataType
from tilewright.errors import NoTorchError

RENAMED = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "divide": "true_divide",
    "equal": "eq",
    "fabs": "abs",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "mod": "remainder",
    "negative": "neg",
    "not_equal": "ne",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}
"""The functions of NumPy that torch calls something else; most go by one name."""

OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "true_divide": "/", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip


def written(reference: Callable[..., Any], names: list[str], dtype: DataType) -> str:
    """Return what a reference makes of elements of `dtype` that go by some names."""
    made: Any = reference(*(Elements(name, dtype) for name in names))
    return made.text if isinstance(made, Elements) else repr(made)


class Elements:
    """Elements that a reference computes with: how they are written, and what it may ask of them."""

    def __init__(self, text: str, element: DataType) -> None:
        self.text = text
        self.element = element

    @property
    def dtype(self) -> Any:
        """The NumPy type a reference would see: floats are exact there."""
        return np.dtype("float64") if self.element.is_float() else self.element.numpy

    @property
    def shape(self) -> _Shape:
        """The shape of the elements, for a reference to hand on."""
        return _Shape(f"{self.text}.shape")

    def astype(self, dtype: Any) -> Elements:
        """Return the elements in another type of integers, which all are of one here."""
        return Elements(f"{self.text}.to(torch.int64)", self.element) if self.element.is_int() else self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Elements:
        """Write down a function of NumPy applied to elements."""
        return self._called(ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Elements:
        """Write down a function of NumPy that is no ufunc."""
        return self._called(function.__name__, *args)

    def _called(self, name: str, *inputs: Any) -> Elements:
        plain = name.partition(" ")[0]  # what NumPy makes of a function of Python's says so behind its name
        if plain in WRITTEN:
            return Elements(f"_{plain}({', '.join(map(self._shown, inputs))})", self.element)
        known = RENAMED.get(plain, plain)
        shown = [self._shown(each) for each in inputs]
        if known in OPERATORS and len(shown) == 2:
            return Elements(f"({shown[0]} {OPERATORS[known]} {shown[1]})", self.element)
        if known not in TORCH:
            raise NoTorchError(f"torch has nothing for np.{name}")
        if known in DIVISIONS and self.element.is_int():
            return Elements(f"_by(torch.{known}, {', '.join(shown)})", self.element)
        return Elements(f"torch.{known}({', '.join(shown)})", self.element)

    def _shown(self, value: Any) -> str:
        if isinstance(value, (Elements, _Shape)):
            return value.text
        number = float(value) if self.element.is_float() else int(value)
        exact = "float64" if self.element.is_float() else "int64"
        return f"torch.tensor({show_float(number)}, dtype=torch.{exact})"

    # fmt: off
    def __add__(self, other: Any) -> Elements: return self._called("add", self, other)
    def __radd__(self, other: Any) -> Elements: return self._called("add", other, self)
    def __sub__(self, other: Any) -> Elements: return self._called("subtract", self, other)
    def __rsub__(self, other: Any) -> Elements: return self._called("subtract", other, self)
    def __mul__(self, other: Any) -> Elements: return self._called("multiply", self, other)
    def __rmul__(self, other: Any) -> Elements: return self._called("multiply", other, self)
    def __truediv__(self, other: Any) -> Elements: return self._called("divide", self, other)
    def __rtruediv__(self, other: Any) -> Elements: return self._called("divide", other, self)
    def __floordiv__(self, other: Any) -> Elements: return self._called("floor_divide", self, other)
    def __mod__(self, other: Any) -> Elements: return self._called("mod", self, other)
    def __and__(self, other: Any) -> Elements: return self._called("bitwise_and", self, other)
    def __or__(self, other: Any) -> Elements: return self._called("bitwise_or", self, other)
    def __xor__(self, other: Any) -> Elements: return self._called("bitwise_xor", self, other)
    def __invert__(self) -> Elements: return self._called("invert", self)
    def __neg__(self) -> Elements: return self._called("negative", self)
    def __lt__(self, other: Any) -> Elements: return self._called("less", self, other)
    def __le__(self, other: Any) -> Elements: return self._called("less_equal", self, other)
    def __gt__(self, other: Any) -> Elements: return self._called("greater", self, other)
    def __ge__(self, other: Any) -> Elements: return self._called("greater_equal", self, other)
    def __eq__(self, other: Any) -> Elements: return self._called("equal", self, other)  # pyright: ignore[reportIncompatibleMethodOverride]
    def __ne__(self, other: Any) -> Elements: return self._called("not_equal", self, other)  # pyright: ignore[reportIncompatibleMethodOverride]
    # fmt: on
    __hash__ = object.__hash__


class _Shape:
    """The shape of some elements, as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text


def show_float(number: float) -> str:
    """Return a number as Python reads it back, infinities and NaN too."""
    return repr(number) if number - number == 0 else f'float("{number}")'


WRITTEN = ("between", "fused", "times_fast_normal", "times_normal")
"""Functions of floats that are neither NumPy's nor torch's, and stand in `values`."""

DIVISIONS = ("floor_divide", "fmod", "remainder")
"""Functions that NumPy lets give zero for integers by zero, and torch does not."""

TORCH = frozenset(
    "abs acos acosh asin asinh atan atan2 atanh cosh erf erfc log10 sinh "
    "maximum minimum exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tanh floor ceil trunc round sign square "
    "reciprocal fmod remainder floor_divide neg pow where broadcast_to ones_like zeros_like full_like copysign "
    "isfinite isinf isnan signbit bitwise_not bitwise_left_shift bitwise_right_shift logical_and "
    "logical_or logical_not clamp".split()
)
"""The functions of torch that a reference may need, each of which does what NumPy's of that name does."""
