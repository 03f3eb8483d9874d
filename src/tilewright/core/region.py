"""Regions: what a tensor or a tile is while the interpreter runs.

A tensor's region shares its array with the caller's buffer, and writing it writes that buffer. A tile's region is a
value: ops make new ones. `valid` is the leading part that holds data; the rest is unspecified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.arrays import np
from tilewright.dtypes import DataType, from_numpy, round_to
from tilewright.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


@record
class Region:
    """An array and the extent of its data along each axis."""

    data: Array
    valid: tuple[int, ...]

    @property
    def window(self) -> tuple[slice, ...]:
        """The slices that select the valid part."""
        return tuple(slice(0, extent) for extent in self.valid)

    @property
    def live(self) -> Array:
        """The valid part, as a view."""
        return self.data[self.window]

    @property
    def dtype(self) -> DataType:
        """The scalar type of the elements."""
        return from_numpy(self.data.dtype)


def whole(data: Array) -> Region:
    """Return a region all of whose elements hold data."""
    return Region(data, data.shape)


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
    return result


def exact(values: Array) -> Array:
    """Return elements in a type that holds sums and products of them: floats widen to float64."""
    if values.dtype.kind in "iub":
        return values
    wide = np.float64 if values.dtype.kind == "f" or from_numpy(values.dtype).is_float() else np.int64
    with np.errstate(all="ignore"):
        return values.astype(wide)
