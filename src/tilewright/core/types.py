"""Types: what is known about a value before the program runs.

An extent is an int when it is known, an expression over program symbols (`pl.dynamic`) when it is known by name,
and None when only the running program will know it. Shapes say how much storage a value has; `valid` says which
leading part of it holds data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from tilewright.core.enums import MemorySpace, TensorLayout
from tilewright.dtypes import DataType
from tilewright.records import record


class SymbolicExtent:
    """An extent known by name: the base of scalar expressions, which are its one implementation."""

    __slots__ = ()


Extent: TypeAlias = int | SymbolicExtent | None
Shape: TypeAlias = tuple[Extent, ...]

E = TypeVar("E")


@record
class MemRef:
    """A place in a memory space: the byte offset and byte size of it, or of its slots, and the allocation it is in."""

    offset: int
    size: int
    base: str = ""
    slots: int | None = None
    slot: Extent = None


@record
class NamedMemRef:
    """A place that tiles share by name, or one of its slots: a number, or what the running program has for one."""

    name: str
    slots: int | None = None
    slot: Extent = None


@record
class ScalarType:
    """One number."""

    dtype: DataType

    def __str__(self) -> str:
        return f"scalar[{self.dtype}]"


@record
class TensorType:
    """A buffer in global memory, or a strided view of one."""

    shape: Shape
    dtype: DataType
    valid: Shape
    layout: TensorLayout = TensorLayout.ND
    is_window: bool = False
    """Whether every rank of a domain has such a buffer, which the others reach; views of it are plain tensors."""

    def __str__(self) -> str:
        return _describe("window" if self.is_window else "tensor", self.shape, self.dtype, self.valid)


@record
class TileType:
    """An on-chip value of static shape."""

    shape: tuple[int, ...]
    dtype: DataType
    valid: Shape
    memory: MemorySpace = MemorySpace.Vec
    memref: MemRef | NamedMemRef | None = None

    def __str__(self) -> str:
        return _describe("tile", self.shape, self.dtype, self.valid)

    @property
    def nbytes(self) -> int:
        """Storage of the whole tile in bytes; no element takes less than one."""
        count = self.dtype.get_byte()
        for extent in self.shape:
            count *= extent
        return count


@record
class ArrayType:
    """A small on-core array of scalars."""

    extent: int
    dtype: DataType

    def __str__(self) -> str:
        return f"array[{self.extent}, {self.dtype}]"


@record
class TupleType:
    """Several values at once; the empty one is what an op without a result returns."""

    elements: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"tuple[{', '.join(map(str, self.elements))}]"


ShapedType: TypeAlias = TensorType | TileType
Type: TypeAlias = ScalarType | TensorType | TileType | ArrayType | TupleType

VOID = TupleType()


def tensor(shape: Sequence[Extent], dtype: DataType, valid: Sequence[Extent] | None = None) -> TensorType:
    """Return a plain tensor type, wholly valid unless `valid` says otherwise."""
    return TensorType(tuple(shape), dtype, tuple(shape if valid is None else valid))


def tile(
    shape: Sequence[int], dtype: DataType, valid: Sequence[Extent] | None = None, memory: MemorySpace = MemorySpace.Vec
) -> TileType:
    """Return a tile type, wholly valid unless `valid` says otherwise."""
    return TileType(tuple(shape), dtype, tuple(shape if valid is None else valid), memory)


def reshaped(type_: ShapedType, shape: Shape, valid: Shape, dtype: DataType | None = None) -> ShapedType:
    """Return a type like `type_` with another shape, and with no place in memory yet."""
    dtype = dtype or type_.dtype
    if isinstance(type_, TileType):
        return TileType(static_shape(shape), dtype, valid, type_.memory)
    return TensorType(shape, dtype, valid, type_.layout)


def unplaced(type_: Type) -> Type:
    """Return a type without a place in memory."""
    if isinstance(type_, TileType) and type_.memref is not None:
        return replace(type_, memref=None)
    return type_


def is_moving(type_: Type) -> bool:
    """Return whether only the running program knows in which slot of its place a value of a type is."""
    return isinstance(type_, TileType) and isinstance(getattr(type_.memref, "slot", None), SymbolicExtent)


def swapped(values: Sequence[E], axis1: int, axis2: int) -> tuple[E, ...]:
    """Return what goes with axes of which two are swapped."""
    turned = list(values)
    turned[axis1], turned[axis2] = turned[axis2], turned[axis1]
    return tuple(turned)


def static_shape(shape: Shape) -> tuple[int, ...]:
    """Return `shape` as ints; ValueError when an extent is not known before the program runs."""
    if not all(isinstance(extent, int) for extent in shape):
        raise ValueError(f"extents {show_shape(shape)} are not all static")
    return tuple(extent for extent in shape if isinstance(extent, int))


def is_static(shape: Shape) -> bool:
    """Return whether every extent is known before the program runs."""
    return all(isinstance(extent, int) for extent in shape)


def is_fully_valid(type_: ShapedType) -> bool:
    """Return whether the whole of a value is known to hold data."""
    return type_.valid == type_.shape


def join(first: Type, second: Type) -> Type | None:
    """Return the type of a value that is one or the other, or None when nothing covers both.

    Shapes, element types and memory must agree; a valid extent on which they differ becomes unknown.
    """
    if first == second:
        return first
    if isinstance(first, TupleType) and isinstance(second, TupleType):
        if len(first.elements) != len(second.elements):
            return None
        merged = [join(a, b) for a, b in zip(first.elements, second.elements, strict=True)]
        return TupleType(tuple(m for m in merged if m is not None)) if None not in merged else None
    if isinstance(first, TileType) and isinstance(second, TileType):
        if replace(first, valid=second.valid, memref=None, memory=second.memory) != replace(second, memref=None):
            return None
        return replace(first, valid=_join_extents(first.valid, second.valid), memref=None)
    if isinstance(first, TensorType) and isinstance(second, TensorType):
        if first.dtype != second.dtype or first.layout != second.layout or len(first.shape) != len(second.shape):
            return None
        if any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(first.shape, second.shape, strict=True)
        ):
            return None
        shape = _join_extents(first.shape, second.shape)
        valid, is_window = _join_extents(first.valid, second.valid), first.is_window and second.is_window
        return TensorType(shape, first.dtype, valid, first.layout, is_window)
    return None


def _join_extents(first: Shape, second: Shape) -> Shape:
    return tuple(a if a == b else None for a, b in zip(first, second, strict=True))


def show_extent(extent: Extent) -> str:
    """Return an extent as messages write it; `?` is one only the running program knows."""
    return "?" if extent is None else str(extent)


def show_shape(shape: Shape) -> str:
    """Return a shape as messages write it, as in `[64, M, ?]`."""
    return f"[{', '.join(map(show_extent, shape))}]"


def _describe(kind: str, shape: Shape, dtype: DataType, valid: Shape) -> str:
    extents = "".join(f"{show_extent(extent)}, " for extent in shape)
    partial = f", valid={show_shape(valid)}" if valid != shape else ""
    return f"{kind}[{extents}{dtype}{partial}]"
