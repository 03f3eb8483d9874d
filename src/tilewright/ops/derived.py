"""Derived ops: calls that are written in other ops, of which alone programs are made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, Protocol, TypeVar

from tilewright.core.expr import Expr
from tilewright.core.op import Kind
from tilewright.core.types import ShapedType, TensorType, TileType
from tilewright.dtypes import BF16, FP16, FP32, DataType
from tilewright.errors import InternalError
from tilewright.ops.declare import NUMBERS, UNIFIED, op
from tilewright.ops.families import check_dtype, shaped

F = TypeVar("F", bound=Callable[..., Any])


class Writing(Protocol):
    """Where a derived op is written to."""

    def do(self, name: str, /, **given: Any) -> Expr:
        """Return an op applied to operands and options, those left out at their defaults."""
        ...

    def parts(self, value: Expr) -> tuple[Expr, ...]:
        """Return the values that an op gives at once."""
        ...


def derived(
    expand: Callable[..., Any],
    *,
    example: str,
    kinds: tuple[Kind, ...] = UNIFIED,
    accepts: Collection[DataType] = NUMBERS,
    ulp: float = 0,
    also: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable[[F], F]:
    """Declare an op that is written in others: `expand` takes a writer and the op's own parameters by name."""

    def checked(w: Writing, x: Expr, **given: Any) -> Any:
        check_dtype(shaped(x).dtype, accepts, ["x"])
        return expand(w, x=x, **given)

    return op(
        kinds=kinds, infer=written, evaluate=written, family="derived", expand=checked, example=example,
        accepts=accepts, ulp=ulp, also=also,
    )  # fmt: skip


def written(*_args: object, **_kwargs: object) -> NoReturn:
    """Raise: other ops stand for it."""
    raise InternalError("a derived op is no part of a program")


def on(x: Expr) -> str:
    """Return the first half of the names of ops that take a value: `tile` or `tensor`."""
    return "tile" if isinstance(x.type, TileType) else "tensor"


def cast(w: Writing, x: Expr, dtype: DataType) -> Expr:
    """Return a value with elements of another type."""
    return x if shaped(x).dtype == dtype else w.do(f"{on(x)}.cast", x=x, target_type=dtype)


def widened(w: Writing, x: Expr, *, counts: bool = False) -> Expr:
    """Return a value with elements that sums of it do not round: short floats as fp32, integers too where `counts`."""
    dtype = shaped(x).dtype
    return cast(w, x, FP32) if dtype in (FP16, BF16) or (counts and dtype.is_int()) else x


def float_type(type_: ShapedType) -> DataType:
    """Return the elements of a result that integers have no type for: their own, or fp32."""
    return type_.dtype if type_.dtype.is_float() else FP32


def extents(w: Writing, x: Expr) -> tuple[Any, ...]:
    """Return the extents of a value as ops take them."""
    shape = shaped(x).shape
    if not isinstance(x.type, TensorType):
        return shape
    return tuple(
        w.do("tensor.dim", tensor=x, axis=axis) if extent is None else extent for axis, extent in enumerate(shape)
    )
