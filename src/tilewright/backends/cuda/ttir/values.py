"""Values: what the variables of a kernel are while its text is written.

A tile is a tensor of Triton's whose extents are rounded up to powers of two. What lies outside its valid part may be
anything, unless it is known to be zero; whoever combines elements of a tile masks it first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilewright.backends.cuda.ttir.text import Value
from tilewright.core.types import TileType
from tilewright.dtypes import BF16, BOOL, FP8E4M3FN, FP8E5M2, FP16, FP32, FP64, INT8, DataType
from tilewright.records import entity, record

Extent: TypeAlias = "int | Value"
"""How many there are: a number, or a scalar of the running kernel."""


@record
class Planes:
    """A tensor as descriptors have it: its planes, which the last two axes are, one below the other, as rows of one."""

    descriptor: Callable[[tuple[int, int], str], Value]
    """Gives the descriptor for blocks of a shape, of elements as they lie in memory or of others of that size."""
    apart: tuple[Callable[[], Value], ...] = ()
    """Give how many rows there are from a plane to the next, along each axis before the last two."""
    before: tuple[tuple[Extent, Callable[[], Value]], ...] = ()
    """Along axes that a view has one place of: which, and how many rows there are from one to the next."""


@record
class Scalar:
    """A number; `known` is what it always is, where that is an integer that the text knows."""

    value: Value
    dtype: DataType
    known: int | None = None


ANY = object()
"""The root of tensors that may be one of several: they may share memory with all."""


@entity
class Tensor:
    """A strided view of global memory; strides count elements. `root` is the same for all that may share memory."""

    pointer: Value
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    valid: tuple[Extent, ...]
    dtype: DataType
    root: object
    planes: Planes | None = None
    """By which descriptors blocks of it are loaded, where it can have any."""


@entity
class Tile:
    """Elements in registers, and how much of them is valid."""

    value: Value
    type: TileType
    valid: tuple[Extent, ...]
    is_zero_outside: bool = False
    """Whether everything outside the valid part is known to be zero."""


@entity
class Mask:
    """What a comparison of tiles gives: a condition for each element, and what packs them to bits."""

    value: Value
    packed: Callable[[], Tile]


Binding: TypeAlias = "Scalar | Tensor | Tile | Mask | tuple[Binding, ...]"

MATRIX_UNITS = {FP16: 16, BF16: 16, INT8: 32, FP8E4M3FN: 32, FP8E5M2: 32}
"""How long the common axis of a product has to be on the matrix units, by what is multiplied."""

SMALL_FLOATS = {FP8E4M3FN: "f8E4M3FN", FP8E5M2: "f8E5M2"}
"""Floats that the matrix units of Hopper take, as they are called there; they are bytes to everybody else."""

_FLOATS = {FP64: "f64", FP32: "f32", FP16: "f16", BF16: "bf16"}


def element_of(dtype: DataType) -> str:
    """Return the type of an element in registers; formats without arithmetic are the bytes they lie in."""
    if dtype == BOOL:
        return "i1"
    return _FLOATS.get(dtype) or f"i{max(dtype.bits, 8)}"


def working(dtype: DataType) -> DataType:
    """Return what elements of a type are computed in, and a number of it is held as: shorter floats as fp32."""
    return FP32 if dtype.is_float() and dtype != FP64 else dtype


def memory_element(dtype: DataType) -> str:
    """Return the type of an element in memory."""
    return "i8" if dtype == BOOL else element_of(dtype)


def computes(dtype: DataType) -> bool:
    """Return whether there is arithmetic on elements of a type."""
    return dtype == BOOL or dtype in _FLOATS or (dtype.is_int() and dtype.bits >= 8)


def padded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return extents rounded up to powers of two."""
    return tuple(1 << (extent - 1).bit_length() for extent in shape)
