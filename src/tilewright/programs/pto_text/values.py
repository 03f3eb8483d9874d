"""Values of PTO text: what a variable of a program is called there, and how its type is spelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright import dtypes as dt
from tilewright.core.enums import MemorySpace
from tilewright.dtypes import DataType
from tilewright.errors import KernelError
from tilewright.records import record


class NoPtoError(KernelError, NotImplementedError):
    """Something that `as_pto` cannot write down as PTO text."""

    hint = "docs/pto.md lists what PTO text says: write this with other ops, or leave the kernel in `pl`"


_ELEMENTS = {
    dt.FP64: "f64", dt.FP32: "f32", dt.FP16: "f16", dt.BF16: "bf16",
    dt.INT8: "i8", dt.INT16: "i16", dt.INT32: "i32", dt.INT64: "i64",
    dt.UINT8: "ui8", dt.UINT16: "ui16", dt.UINT32: "ui32", dt.UINT64: "ui64", dt.INDEX: "index", dt.BOOL: "i1",
    dt.FP8E4M3FN: "f8E4M3FN", dt.FP8E5M2: "f8E5M2", dt.FP8E8M0: "f8E8M0FNU", dt.TASK_ID: "i64",
}  # fmt: skip
_BOXED = {
    MemorySpace.Mat: ("mat", ", blayout=col_major, slayout=row_major"),
    MemorySpace.Left: ("left", ", blayout=col_major, slayout=row_major"),
    MemorySpace.Right: ("right", ", slayout=col_major"),
    MemorySpace.LeftScale: ("scaling", ", slayout=row_major, fractal=32"),
    MemorySpace.Acc: ("acc", ", blayout=col_major, slayout=row_major, fractal=1024"),
    MemorySpace.Bias: ("bias", ""),
}
"""The memories of the cube, and how tiles lie in them; a single row lies in no boxes."""


def element(dtype: DataType) -> str:
    """Return how an element type is spelled; NoPtoError where this export has none such."""
    if dtype not in _ELEMENTS:
        raise NoPtoError(f"this export has no words for elements of {dtype}")
    return _ELEMENTS[dtype]


def dtype_of(word: str) -> DataType | None:
    """Return the element type that is spelled so, or None."""
    return next((dtype for dtype, spelled in _ELEMENTS.items() if spelled == word), None)


def kept(dtype: DataType) -> DataType:
    """Return how memory, tiles and arrays keep elements: conditions as bytes, zero or one."""
    return dt.INT8 if dtype == dt.BOOL else dtype


@record
class Array:
    """A few numbers that are kept together."""

    name: str
    dtype: DataType
    extent: int

    @property
    def element(self) -> str:
        """The type of one of them."""
        return element(self.dtype)

    @property
    def type(self) -> str:
        """The type of all of them."""
        return f"!pto.local_array<{self.extent}x{self.element}>"


@record
class Number:
    """A scalar, or a constant that is known."""

    name: str
    dtype: DataType
    known: int | float | None = None
    counts: bool = False
    """Whether it is known never to be negative."""

    @property
    def is_natural(self) -> bool:
        """Whether it is zero or more, whatever else."""
        return self.counts or (self.known is not None and self.known >= 0)


@record
class Tile:
    """A tile buffer, of which some rows and columns are valid."""

    name: str
    dtype: DataType
    shape: tuple[int, int]
    valid: tuple[Number, Number]
    memory: MemorySpace = MemorySpace.Vec
    is_mask: bool = False
    """Whether it holds bits, eight columns a byte, in bytes of the shape of what was compared."""
    room: tuple[int, int] = (0, 0)
    """The rows and columns of the buffer, which fill the lines or boxes of its memory."""
    axes: tuple[Number, ...] = ()
    """Of one that is valid in part along more than its rows and columns: how much along each axis but the last."""
    runs_down: bool | None = None
    """Of a window: whether it is one of a column, whose elements lie one below the other however many there are."""

    def along(self, axes: Sequence[Number]) -> Tile:
        """Return the tile as one of which so much is valid along each axis but the last."""
        return replace(self, axes=(*axes,))

    @property
    def type(self) -> str:
        """The type of the buffer."""
        loc, layout = _BOXED.get(self.memory, ("vec", ""))
        if self.dtype == dt.FP8E8M0 and layout:
            layout = _BOXED[MemorySpace.LeftScale][1]
        rows, cols = self.room
        layout = layout if rows > 1 else ""
        if self.is_mask:
            return f"!pto.tile_buf<vec, {rows}x{cols}xui8>"
        if not layout and self.is_column:
            layout = ", blayout=col_major"
        known = tuple(number.known for number in self.valid)
        shown = "x".join("?" if extent is None else str(extent) for extent in known)
        valid = "" if known == self.room else f", valid={shown}"
        return f"!pto.tile_buf<{loc}, {rows}x{cols}x{element(self.dtype)}{valid}{layout}>"

    @property
    def is_column(self) -> bool:
        """Whether its elements lie one below the other."""
        if self.runs_down is not None:
            return self.runs_down
        return self.memory is MemorySpace.Vec and self.shape[1] == 1 and self.shape[0] > 1


LINE = 32
"""Bytes that the machines move at once: rows of tiles are multiples of them."""
_BOX = 16
"""The fewest rows and columns of a box."""


def room_of(dtype: DataType, shape: tuple[int, int], memory: MemorySpace) -> tuple[int, int]:
    """Return the rows and columns of a buffer for a tile: its own, and as many more as fill lines or boxes."""
    line, (rows, cols) = LINE // dtype.get_byte(), shape
    if memory is not MemorySpace.Vec:
        unit = max(_BOX, line)
        return _filled(rows, unit), _filled(cols, unit)
    return (_filled(rows, line), 1) if cols == 1 and rows > 1 else (rows, _filled(cols, line))


def _filled(extent: int, unit: int) -> int:
    return -(-extent // unit) * unit


@record
class Tensor:
    """A window of a tensor view, from some offsets on."""

    view: str
    dtype: DataType
    shape: tuple[Number, ...]
    offsets: tuple[Number, ...]
    pointer: str
    strides: tuple[Number, ...]
    """How many elements further the next one of each axis lies."""
    is_whole: bool = False
    """Whether it is all of a tensor, whose elements lie one after the other."""
    part: tuple[Number, ...] = ()
    """Of one that is valid in part: how much along each axis."""
    is_open: bool = False
    """Whether it stands for any part, which numbers say that loops and branches hand on."""

    @property
    def valid(self) -> tuple[Number, ...]:
        """How much is valid along each axis."""
        return self.part or self.shape

    @property
    def view_type(self) -> str:
        """The type of the view, which has an axis where the tensor has none."""
        return f"!pto.tensor_view<{'x'.join('?' * max(len(self.shape), 1))}x{element(self.dtype)}>"


@record
class Choice:
    """One of several tensors, which one a number of the text says."""

    which: Number
    options: tuple[Tensor, ...]
    numbers: tuple[Number, ...]
    """What says each."""

    @property
    def is_open(self) -> bool:
        """Whether it stands for any part of each."""
        return self.options[0].is_open

    @property
    def views(self) -> tuple[str, ...]:
        """The buffers that its tensors lie in."""
        return tuple(option.view for option in self.options)


Value = Number | Tile | Tensor | Array | Choice
