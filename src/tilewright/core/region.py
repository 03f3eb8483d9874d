"""Regions: what a tensor or a tile is while the interpreter runs.

A tensor's region shares its array with the caller's buffer, and writing it writes that buffer. A tile's region is a
value: ops make new ones. `valid` is the leading part that holds data. Elements that nobody wrote are undefined, and so
is what is computed from them: a shadow beside the data says which, and looking at one is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.arrays import np
from tilewright.core.enums import TensorLayout
from tilewright.dtypes import UINT8, DataType, from_numpy, round_to
from tilewright.errors import ExecutionError
from tilewright.records import record
from tilewright.source import UNKNOWN, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


@record
class Region:
    """An array and the extent of its data along each axis."""

    data: Array
    valid: tuple[int, ...]
    shadow: Array | None = None
    """Zero where an element is defined, as large as the data and a view where that is one; None: all of it is."""
    origin: Span = UNKNOWN
    """Where elements became undefined."""
    bits: int | None = None
    """Of a packed mask: how many columns it has bits for."""
    is_made: bool = False
    """Whether it holds one number everywhere, or nothing: no data is lost with a part of it."""
    layout: TensorLayout = TensorLayout.ND
    """Of an operand that is a tensor: in which order its memory holds the elements, as its type says."""

    @property
    def window(self) -> tuple[slice, ...]:
        """The slices that select the valid part."""
        return tuple(slice(0, extent) for extent in self.valid)

    @property
    def live(self) -> Array:
        """The valid part, as a view, whether it is defined or not."""
        return self.data[self.window]

    @property
    def is_defined(self) -> bool:
        """Whether somebody wrote every valid element."""
        return self.shadow is None or not self.shadow[self.window].any()

    def seen(self, window: tuple[slice | int, ...] | None = None) -> Array:
        """Return the valid part, or another window, to whoever looks at it; ExecutionError for undefined elements."""
        window = self.window if window is None else window
        if self.shadow is not None and self.shadow[window].any():
            raise ExecutionError(undefined_message(self.origin), help=PADDING)
        return self.data[window]

    def moved(self, change: Callable[[Array], Array], valid: Sequence[int]) -> Region:
        """Return the elements elsewhere: `change` gives data and shadow another shape, order or extent."""
        shadow = None if self.shadow is None else change(self.shadow)
        return Region(change(self.data), tuple(valid), shadow, self.origin)

    def forgotten(self) -> Region:
        """Return the region with everything outside its valid part undefined."""
        if self.valid == self.data.shape:
            return self
        shadow = np.full(self.data.shape, 255, np.uint8)
        shadow[self.window] = 0 if self.shadow is None else self.shadow[self.window]
        return replace(self, shadow=shadow)

    def shade(self, window: tuple[slice | int, ...]) -> Array:
        """Return what the shadow of a window is."""
        return np.zeros(self.data[window].shape, np.uint8) if self.shadow is None else self.shadow[window]

    def brighten(self, window: tuple[slice | int, ...]) -> None:
        """Let the elements of a window be defined: somebody wrote them."""
        if self.shadow is not None:
            self.shadow[window] = 0

    @property
    def dtype(self) -> DataType:
        """The scalar type of the elements."""
        return from_numpy(self.data.dtype)


PADDING = (
    "pl.load(..., pad=0.0) reads whole tiles, with 0.0 before a sum and -inf before a maximum; "
    "pl.fillpad fills a tile, pl.tile.full makes one of a value, pl.set_validshape narrows one, such as a sum to which "
    "a loop of no turns added nothing"
)


def undefined_message(origin: Span) -> str:
    """Return what is wrong with looking at elements that nobody wrote."""
    if origin.source is None:
        return "this looks at elements that nobody wrote"
    text = (origin.source.line(origin.line) or "").strip()
    return f"this looks at elements that nobody wrote: they came in at line {origin.line}, `{text}`"


def whole(data: Array) -> Region:
    """Return a region all of whose elements hold data."""
    return Region(data, data.shape)


def unwritten(shape: Sequence[int], dtype: DataType) -> Region:
    """Return storage that is valid and that nobody has written."""
    return Region(blank(shape, dtype), tuple(shape), blank(shape, UINT8), is_made=True)


def blank(shape: Sequence[int], dtype: DataType) -> Array:
    """Return storage for elements nobody has written: NaN where the type has one, else a loud number.

    Unspecified data must look wrong, so that a program which depends on it fails its test.
    """
    if dtype.is_float() and dtype.name != "fp4":
        return np.full(tuple(shape), np.nan, dtype.numpy)
    return np.full(tuple(shape), min(dtype.limits[1], 0x5A5A5A5A), dtype.numpy)


def embed(live: Array, shape: Sequence[int], dtype: DataType) -> Region:
    """Return a new region of `shape` whose valid part is `live`, rounded to `dtype`; packed, in memory of its own."""
    rounded = round_to(live, dtype)
    if rounded.shape == tuple(shape):
        return whole(np.array(rounded, order="C"))
    data = blank(shape, dtype)
    result = Region(data, live.shape)
    data[result.window] = rounded
    return result.forgotten()


def shaded(result: Region, shades: Sequence[Array], origin: Span) -> Region:
    """Return a new region with those valid elements undefined of which any operand is."""
    dark = [shade for shade in shades if shade.any()]
    if not dark:
        return result
    shadow = np.zeros(result.data.shape, np.uint8) if result.shadow is None else result.shadow
    for shade in dark:
        shadow[result.window] |= np.broadcast_to(shade, result.valid)
    return replace(result, shadow=shadow, origin=origin)


def exact(values: Array) -> Array:
    """Return elements in a type that holds sums and products of them: floats widen to float64."""
    if values.dtype.kind in "iub":
        return values
    wide = np.float64 if values.dtype.kind == "f" or from_numpy(values.dtype).is_float() else np.int64
    with np.errstate(all="ignore"):
        return values.astype(wide)


def overlaps_itself(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Return whether elements of so many bytes share memory, as where an array is expanded, or may share it."""
    if 0 in shape:
        return False
    reach, axes = size, sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1)
    if len(axes) == 2 and axes[0][0] and not any(stride % size for stride, _ in axes):
        (inner, few), (outer, many) = axes
        common = gcd(inner, outer)  # so many steps along one axis are as far as some along the other
        return outer // common < few and inner // common < many
    for stride, extent in axes:
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False
