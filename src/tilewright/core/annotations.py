"""Annotations: the types a kernel author writes.

`Tensor`, `Tile` and `Scalar` are classes so that editors know them; subscripting one gives an instance that says
shape and element type. Their operators exist for type checkers: a kernel's body is read, never run.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from tilewright.core.enums import CompactMode, MemorySpace, PadValue, ParamDirection, TensorLayout, TileLayout
from tilewright.core.memrefs import MemRef
from tilewright.dtypes import INDEX, DataType
from tilewright.errors import AnnotationError, OutsideKernelError
from tilewright.records import record
from tilewright.source import calling_line

__all__ = ["Array", "DynVar", "Scalar", "Tensor", "TensorView", "Tile", "TileView", "dynamic"]

Self = TypeVar("Self", bound="Arithmetic")
T = TypeVar("T")


def outside_kernel(name: str) -> NoReturn:
    """Raise: `name` was used as plain Python."""
    raise OutsideKernelError(
        f"`{name}` describes work for a kernel and cannot run as plain Python",
        spans=[calling_line()],
        help="use it inside a function decorated with @pl.function, @pl.inline or @pl.jit",
    )


class Arithmetic:
    """Operators of values inside a kernel; a comparison is a condition of scalars, and a mask of tiles and tensors."""

    # fmt: off
    def __add__(self: Self, other: object) -> Self: outside_kernel("+")
    def __radd__(self: Self, other: object) -> Self: outside_kernel("+")
    def __sub__(self: Self, other: object) -> Self: outside_kernel("-")
    def __rsub__(self: Self, other: object) -> Self: outside_kernel("-")
    def __mul__(self: Self, other: object) -> Self: outside_kernel("*")
    def __rmul__(self: Self, other: object) -> Self: outside_kernel("*")
    def __truediv__(self: Self, other: object) -> Self: outside_kernel("/")
    def __rtruediv__(self: Self, other: object) -> Self: outside_kernel("/")
    def __floordiv__(self: Self, other: object) -> Self: outside_kernel("//")
    def __rfloordiv__(self: Self, other: object) -> Self: outside_kernel("//")
    def __mod__(self: Self, other: object) -> Self: outside_kernel("%")
    def __rmod__(self: Self, other: object) -> Self: outside_kernel("%")
    def __lshift__(self: Self, other: object) -> Self: outside_kernel("<<")
    def __rshift__(self: Self, other: object) -> Self: outside_kernel(">>")
    def __and__(self: Self, other: object) -> Self: outside_kernel("&")
    def __or__(self, other: object) -> Any: return Maybe(self) if other is None else outside_kernel("|")
    def __xor__(self: Self, other: object) -> Self: outside_kernel("^")
    def __matmul__(self: Self, other: object) -> Self: outside_kernel("@")
    def __pow__(self: Self, other: object) -> Self: outside_kernel("**")
    def __rpow__(self: Self, other: object) -> Self: outside_kernel("**")
    def __invert__(self: Self) -> Self: outside_kernel("~")
    def __neg__(self: Self) -> Self: outside_kernel("-")
    def __lt__(self, other: object) -> Any: outside_kernel("<")
    def __le__(self, other: object) -> Any: outside_kernel("<=")
    def __gt__(self, other: object) -> Any: outside_kernel(">")
    def __ge__(self, other: object) -> Any: outside_kernel(">=")
    # fmt: on


@record
class Maybe:
    """`T | None`: a parameter that may be left out."""

    annotation: Any

    def __repr__(self) -> str:
        return f"{self.annotation!r} | None"


class Indexable(Arithmetic):
    """Subscripts of values inside a kernel, and what can be asked about them."""

    # fmt: off
    @property
    def ndim(self) -> int: outside_kernel(".ndim")
    @property
    def T(self: Self) -> Self: outside_kernel(".T")
    @property
    def mT(self: Self) -> Self: outside_kernel(".mT")
    def size(self, axis: int | None = None) -> Any: outside_kernel(".size()")
    def dim(self) -> int: outside_kernel(".dim()")
    def numel(self) -> Any: outside_kernel(".numel()")
    # fmt: on

    def __getitem__(self, index: object) -> Any:
        raise NotImplementedError("subscripts of tensors and tiles only mean something inside a kernel")

    def __setitem__(self, index: object, value: object) -> None:
        raise NotImplementedError("subscripts of tensors and tiles only mean something inside a kernel")


@record
class TensorView:
    """How a tensor annotation refines its buffer."""

    stride: Sequence[Any] = ()
    layout: TensorLayout | None = None
    valid_shape: Sequence[Any] | None = None
    pad: PadValue = PadValue.null


@record
class TileView:
    """How a tile annotation refines its storage."""

    valid_shape: Sequence[Any] | None = None
    stride: Sequence[Any] = ()
    start_offset: int | None = None
    blayout: TileLayout | None = None
    slayout: TileLayout | None = None
    fractal: int | None = None
    pad: PadValue = PadValue.null
    compact: CompactMode = CompactMode.null


class Tensor(Indexable):
    """A buffer in global memory: `pl.Tensor[[rows, cols], pl.FP32]`, or bare under `@pl.jit`."""

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: DataType,
        layout: TensorLayout | None = None,
        view: TensorView | None = None,
        memref: MemRef | None = None,
    ) -> None:
        self.shape: tuple[Any, ...] = tuple(shape)
        self.dtype = dtype
        self.layout = layout
        self.view = view
        self.memref = memref

    def __class_getitem__(cls, item: Any) -> Tensor:
        shape, dtype, *rest = _parts("Tensor", item)
        result = cls(shape, dtype)
        for extra in rest:
            if isinstance(extra, TensorLayout):
                result.layout = extra
            elif isinstance(extra, TensorView):
                result.view = extra
            elif isinstance(extra, MemRef):
                result.memref = extra
            else:
                raise _wrong(f"Tensor[...] takes a layout, a TensorView or a MemRef after the dtype, got {extra!r}")
        return result

    def bind_dynamic(self, dim: int, var: DynVar) -> None:
        """Say that axis `dim` has the extent `var`; read by `@pl.jit`, without effect elsewhere."""

    def __repr__(self) -> str:
        return f"pl.Tensor[{list(self.shape)!r}, pl.{self.dtype.symbol}]"


class DistributedTensor(Tensor):
    """A window: this rank's part of a buffer that its peers reach, `pld.DistributedTensor[[rows, cols], pl.FP32]`."""

    def __class_getitem__(cls, item: Any) -> Tensor:
        return super().__class_getitem__(tuple(part for part in _sequence(item) if not _names_buffer(part)))

    def __repr__(self) -> str:
        return f"pl.distributed.DistributedTensor[{list(self.shape)!r}, pl.{self.dtype.symbol}]"


def _names_buffer(part: object) -> bool:
    """Return whether a part of an annotation names the buffer behind a window, which says nothing about it."""
    return isinstance(part, str) and part.startswith("window_buffer=")


class Tile(Indexable):
    """An on-chip value: `pl.Tile[[64, 64], pl.FP32]`."""

    def __init__(self, shape: Sequence[Any], dtype: DataType) -> None:
        self.shape: tuple[Any, ...] = tuple(shape)
        self.dtype = dtype
        self.memory: MemorySpace | None = None
        self.view: TileView | None = None
        self.memref: MemRef | None = None

    def __class_getitem__(cls, item: Any) -> Tile:
        shape, dtype, *rest = _parts("Tile", item)
        result = cls(shape, dtype)
        for extra in rest:
            if isinstance(extra, MemorySpace):
                result.memory = extra
            elif isinstance(extra, TileView):
                result.view = extra
            elif isinstance(extra, MemRef):
                result.memref = extra
            else:
                raise _wrong(f"Tile[...] takes a MemRef, a memory space or a TileView after the dtype, got {extra!r}")
        if result.memref is not None and result.memory is None:
            raise _wrong("Tile[...] with a MemRef needs its memory space too")
        return result

    def __repr__(self) -> str:
        return f"pl.Tile[{list(self.shape)!r}, pl.{self.dtype.symbol}]"


class Runtime:
    """Stands for a scalar's value: each call of the program brings it, and the code holds none."""

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = Runtime()
"""`n: pl.Scalar[pl.INT32, pl.RUNTIME]`, or `kernel.compile(n=pl.RUNTIME)`: `n` stays a parameter, in nobody's code."""


class Scalar(Arithmetic):
    """One number: `pl.Scalar[pl.INT32]`, or `pl.Scalar[pl.INDEX, (0, 192)]` for one that stays within bounds.

    `pl.Scalar[pl.FP32, pl.RUNTIME]` is one that every call of a kernel brings anew: another value compiles nothing.
    """

    def __init__(self, dtype: DataType, bounds: tuple[int, int] | None = None, is_runtime: bool = False) -> None:
        self.dtype = dtype
        self.bounds = bounds
        self.is_runtime = is_runtime

    def __class_getitem__(cls, item: Any) -> Scalar:
        dtype, *said = parts if len(parts := _sequence(item)) in (2, 3) else (item,)
        if not isinstance(dtype, DataType):
            raise _wrong(f"Scalar[...] needs a dtype, for example pl.INT32, got {dtype!r}")
        bounds = next((part for part in said if part is not RUNTIME), None)
        return Scalar(dtype, bounds, any(part is RUNTIME for part in said))

    def __index__(self) -> int:
        outside_kernel("a scalar as an index")

    def __repr__(self) -> str:
        return f"pl.Scalar[pl.{self.dtype.symbol}]"


class Array(Indexable):
    """A small on-core array: `pl.Array[4, pl.INT32]`."""

    def __init__(self, extent: int, dtype: DataType) -> None:
        self.extent = extent
        self.dtype = dtype

    def __class_getitem__(cls, item: tuple[int, DataType]) -> Array:
        return cls(*item)

    def __repr__(self) -> str:
        return f"pl.Array[{self.extent}, pl.{self.dtype.symbol}]"


class DynExpr(Scalar):
    """A formula over named extents, as in `M // 2`."""

    def __init__(self, operation: str, operands: tuple[DynExpr | int, ...]) -> None:
        super().__init__(INDEX)
        self.operation = operation
        self.operands = operands

    # fmt: off
    def __add__(self, other: Any) -> DynExpr: return DynExpr("add", (self, other))
    def __radd__(self, other: Any) -> DynExpr: return DynExpr("add", (other, self))
    def __sub__(self, other: Any) -> DynExpr: return DynExpr("sub", (self, other))
    def __rsub__(self, other: Any) -> DynExpr: return DynExpr("sub", (other, self))
    def __mul__(self, other: Any) -> DynExpr: return DynExpr("mul", (self, other))
    def __rmul__(self, other: Any) -> DynExpr: return DynExpr("mul", (other, self))
    def __floordiv__(self, other: Any) -> DynExpr: return DynExpr("floordiv", (self, other))
    def __rfloordiv__(self, other: Any) -> DynExpr: return DynExpr("floordiv", (other, self))
    def __mod__(self, other: Any) -> DynExpr: return DynExpr("mod", (self, other))
    def __rmod__(self, other: Any) -> DynExpr: return DynExpr("mod", (other, self))
    # fmt: on


class DynVar(DynExpr):
    """A named extent that the caller's tensors decide."""

    def __init__(self, name: str) -> None:
        super().__init__("", ())
        self.name = name

    def __repr__(self) -> str:
        return f"pl.dynamic({self.name!r})"


def dynamic(name: str) -> DynVar:
    """Return a named extent for tensor annotations; ValueError unless `name` is an identifier."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"pl.dynamic needs an identifier, got {name!r}")
    return DynVar(name)


@record
class Directed(Generic[T]):
    """An annotation with its direction; made by `Out[...]` and `InOut[...]`."""

    annotation: Any
    direction: ParamDirection

    def __or__(self, other: None) -> Maybe:
        return Maybe(self)

    def __repr__(self) -> str:
        inner = "pl.Tensor" if self.annotation is Tensor else repr(self.annotation)
        return f"pl.{self.direction.name}[{inner}]"


class Out:
    """`pl.Out[T]`: a parameter the kernel writes."""

    def __class_getitem__(cls, annotation: Any) -> Directed[Any]:
        return Directed(annotation, ParamDirection.Out)


class InOut:
    """`pl.InOut[T]`: a parameter the kernel reads and writes."""

    def __class_getitem__(cls, annotation: Any) -> Directed[Any]:
        return Directed(annotation, ParamDirection.InOut)


@record
class TupleAnnotation:
    """Several returned values; made by `pl.Tuple[...]`."""

    elements: tuple[Any, ...]


class Tuple:
    """`pl.Tuple[T1, T2]`: several returned values."""

    def __class_getitem__(cls, item: Any) -> TupleAnnotation:
        return TupleAnnotation(_sequence(item))


X = TypeVar("X", Tensor, Tile)
"""An operand that is either a tensor or a tile, the result being the same."""

Number: TypeAlias = Scalar | int | float
"""A scalar that meets a tile's or tensor's elements."""

Index: TypeAlias = Scalar | int
"""A scalar that counts or addresses."""

Condition: TypeAlias = Scalar | bool
"""A scalar that is true or false."""

Extents: TypeAlias = Sequence[Scalar | int]
"""One scalar per axis."""


def _sequence(item: Any) -> tuple[Any, ...]:
    """Return what stands between the brackets of a subscript, as a tuple."""
    return tuple(item) if isinstance(item, tuple) else (item,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _parts(name: str, item: Any) -> tuple[Any, ...]:
    parts = _sequence(item)
    if not 2 <= len(parts) <= 5:
        raise _wrong(
            f"{name}[...] needs a shape and a dtype, and takes up to three refinements, got {len(parts)} element(s)"
        )
    if not isinstance(parts[0], (list, tuple)):
        raise _wrong(f"{name}[...] needs a list of extents first, got {parts[0]!r}")
    if not isinstance(parts[1], DataType):
        raise _wrong(f"{name}[...] needs a dtype second, for example pl.FP32, got {parts[1]!r}")
    return parts


def _wrong(message: str) -> AnnotationError:
    """Return the error for an annotation that is wrong as Python evaluates it, before any decorator runs."""
    help = "for example pl.Tensor[[64, 64], pl.FP32] or pl.Scalar[pl.INT32]"
    return AnnotationError(message, spans=[calling_line()], help=help)
