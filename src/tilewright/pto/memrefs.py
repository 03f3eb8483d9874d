"""Memrefs: buffers as passes of a compiler spell them, whose memory space says what each is here.

In a local memory it is a tile buffer, and what is bound to it says how much of that is valid; in global memory a row of
unknown length is a pointer, and all else a window. One that names no memory, or leaves the extents of a local one open,
is carried.
"""

from __future__ import annotations

import re
from math import prod

from tilewright.pto.types import Dims, Opaque, Ptr, Scalar, Space, TensorView, TileBuf, Type
from tilewright.records import record

_MOVED = re.compile(r"offset: (?!0>)")


@record
class TileMemRef(TileBuf):
    """A tile buffer that is spelled as a memref; its rows are all extents but the last."""

    text: str = ""

    @property
    def tile(self) -> TileBuf:
        """The tile buffer that it is before anything is bound to it: all of it is valid."""
        extents = self.rows, self.cols
        return TileBuf(self.space, self.element, *extents, *extents, self.blayout)

    def __str__(self) -> str:
        return self.text


@record
class OpenMemRef(Opaque):
    """A memref whose extents or memory only what it was made of knows."""


@record
class PointerMemRef(Ptr):
    """An address in global memory that is spelled as a memref."""

    text: str = ""

    def __str__(self) -> str:
        return self.text


@record
class WindowMemRef(TensorView):
    """A window on global memory that is spelled as a memref."""

    text: str = ""

    def __str__(self) -> str:
        return self.text


def memref(text: str, shape: Dims, element: Scalar, strides: Dims, space: Space) -> Type:
    """Return the memref that `text` spells; without `strides` its rows lie side by side."""
    if space is not Space.GM:
        return _local(text, shape, element, strides, space)
    if shape == (None,) and strides in ((), (1,)):
        return PointerMemRef(element, space, text)
    return WindowMemRef(shape, element, partition=True, text=text)


def _local(text: str, shape: Dims, element: Scalar, strides: Dims, space: Space) -> Type:
    extents = [extent for extent in shape if extent]
    if not extents or len(extents) < len(shape):
        return OpenMemRef(text)
    rows, cols = prod(extents[:-1]), extents[-1]
    blayout = "col_major" if strides == (1, rows) and strides != (cols, 1) else "row_major"
    return TileMemRef(space, element, rows, cols, None, None, blayout, text=text)


def is_memref(type: Type) -> bool:
    """Return whether a type is a memref."""
    return isinstance(type, TileMemRef | OpenMemRef | PointerMemRef | WindowMemRef)


def is_region(type: Type) -> bool:
    """Return whether a value of a type has rows of elements: a tile, or a window of memory."""
    return isinstance(type, TileBuf | TensorView) or is_memref(type)


def as_passed(type: Type) -> Type:
    """Return the type of what a launch passes for a parameter."""
    return Ptr(type.element, type.space) if isinstance(type, PointerMemRef) else type


def begins_its_buffer(type: Type) -> bool:
    """Return whether the first element of a memref is known to be that of its buffer."""
    return _MOVED.search(str(type)) is None
