# pyright: reportPrivateUsage=false, reportUnusedFunction=false
"""Shapes in torch text: values cut, joined, filled and seen differently; see `values` for how it is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.programs.torch_text.spelled import spells
from tilewright.programs.torch_text.values import _constant, _padding, _Value, _words

torch: Any = None  # what the text imports


@spells("tile.slice", "tensor.slice")
def _sliced(
    dtype: Any, x: _Value, shape: Sequence[int], offset: Sequence[int], valid_shape: Any = None,
    drop_dims: Sequence[int] | None = None, pad_value: Any = None, clamp: bool = False,
) -> _Value:  # fmt: skip
    """Return a window: a view, which nobody writes to where it is a tile."""
    for start, size, extent in zip(offset, shape, x.data.shape, strict=True):
        if start < 0 or size < 0 or (start + size > extent and not clamp):
            raise IndexError(f"a slice of {size} element(s) at {start} does not fit 0 to {extent}")
    data = x.data[tuple(slice(start, start + size) for start, size in zip(offset, shape, strict=True))]
    wanted = zip(shape if valid_shape is None else valid_shape, x.valid, offset, data.shape, strict=True)
    valid = [max(0, min(want, held - start, size)) for want, held, start, size in wanted]
    dropped = {axis % data.ndim for axis in drop_dims or ()}
    picked = data[tuple(0 if axis in dropped else slice(None) for axis in range(data.ndim))]
    return _Value(picked, [n for axis, n in enumerate(valid) if axis not in dropped])


@spells("tile.strided", "tensor.strided")
def _strided(dtype: Any, x: _Value, steps: Sequence[int]) -> _Value:
    """Return every so many elements along each axis."""
    window = tuple(slice(None, None, step) for step in steps)
    return _Value(x.data[window], [-(-extent // step) for extent, step in zip(x.valid, steps, strict=True)])


@spells("tile.flip")
def _flipped(dtype: Any, x: _Value, axis: Any = None) -> _Value:
    """Return what is valid in the opposite order."""
    axes = range(x.data.dim()) if axis is None else (axis,) if isinstance(axis, int) else axis
    live = x.live()
    data = x.data.clone()
    data[tuple(slice(0, extent) for extent in x.valid)] = torch.flip(_words(live), tuple(axes)).view(live.dtype)
    return _Value(data, x.valid)


@spells("tile.transpose", "tensor.transpose")
def _transposed(dtype: Any, x: _Value, axis1: int, axis2: int, **_: Any) -> _Value:
    """Return two axes swapped."""
    valid = list(x.valid)
    valid[axis1], valid[axis2] = valid[axis2], valid[axis1]
    return _Value(x.data.transpose(axis1, axis2), valid)


@spells("tile.transpose_view")
def _turned(dtype: Any, tile: _Value) -> _Value:
    """Return the last two axes swapped."""
    return _transposed(dtype, tile, -1, -2)


@spells("tile.concat", "tensor.concat")
def _joined(dtype: Any, src0: _Value, src1: _Value) -> _Value:
    """Return two values side by side."""
    valid = (*src0.valid[:-1], src0.data.shape[-1] + src1.valid[-1])
    return _Value(torch.cat([src0.data, src1.data], -1), valid)


@spells("tile.fillpad", "tensor.fillpad")
def _filled(dtype: Any, x: _Value, pad_value: Any = "zero") -> _Value:
    """Return a value with a number wherever it holds nothing."""
    return _filled_to(dtype, x, x.data.shape, pad_value)


@spells("tile.fillpad_inplace")
def _filled_tile(dtype: Any, tile: _Value, pad_value: Any = "zero") -> _Value:
    """Return a tile with a number wherever it holds nothing."""
    return _filled_to(dtype, tile, tile.data.shape, pad_value)


@spells("tile.fillpad_expand", "tensor.fillpad_expand")
def _filled_to(dtype: Any, x: _Value, shape: Sequence[int], pad_value: Any = "zero") -> _Value:
    """Return what a value holds in a larger one, and a number everywhere else."""
    made = _Value(_constant(shape, _padding(pad_value, dtype), dtype))
    made.data[tuple(slice(0, extent) for extent in x.valid)] = x.live()
    return made


@spells("tile.set_validshape", "tensor.set_validshape")
def _narrowed(dtype: Any, x: _Value, valid_rows: int, valid_cols: int) -> _Value:
    """Return a value of which another part holds data."""
    if not (0 <= valid_rows <= x.data.shape[-2] and 0 <= valid_cols <= x.data.shape[-1]):
        raise ValueError(f"a valid part of [{valid_rows}, {valid_cols}] does not fit {list(x.data.shape[-2:])}")
    return _Value(x.data, (*x.valid[:-2], valid_rows, valid_cols))


@spells("tile.extract")
def _extracted(
    dtype: Any, src: _Value, index_row: int, index_col: int, shape: Sequence[int], target_memory: Any = None
) -> _Value:
    """Return a part of a tile."""
    return _sliced(dtype, src, shape, (index_row, index_col))


@spells("tile.reshape")
def _reshaped(dtype: Any, x: _Value, shape: Sequence[int], part: Sequence[int | None] = ()) -> _Value:
    """Return the elements of a tile in another shape."""
    return _Value(x.data.reshape(tuple(shape)), _part(x, shape, part))


@spells("tensor.reshape")
def _viewed(dtype: Any, x: _Value, shape: Sequence[int], part: Sequence[int | None] = ()) -> _Value:
    """Return a tensor's memory in another shape."""
    return _Value(x.data.view(tuple(shape)), _part(x, shape, part))


def _part(x: _Value, shape: Sequence[int], part: Sequence[int | None]) -> list[int]:
    """Return how much a value holds in another shape, of which `part` is what is known."""
    if x.valid == tuple(x.data.shape):
        return list(shape)
    known = [extent for extent in part if extent is not None]
    held = [math.prod(x.valid) // max(math.prod(known), 1) if n is None else n for n in part]
    if len(part) - len(known) > 1:
        own = [n for n, size in zip(x.valid, x.data.shape, strict=True) if size != 1]
        held = [own.pop(0) if size != 1 else 1 for size in shape]
    if math.prod(held) != math.prod(x.valid):
        raise ValueError(f"{list(x.valid)} of {list(x.data.shape)} cannot become {list(shape)}")
    return held


@spells("tile.reinterpret_view", "tensor.reinterpret_view")
def _reinterpreted(
    _dtype: Any, data: _Value, dtype: Any, shape: Sequence[int] | None = None, part: Any = None, full: Any = None
) -> _Value:
    """Return the bytes of a value as elements of another type."""
    if tuple(full) == tuple(data.data.shape) or data.data.ndim < 2 or data.data.shape[-1] != 1:
        seen = data.data.view(dtype) if data.data.stride(-1) == 1 else data.data.contiguous().view(dtype)
        axis = -1
    else:
        seen = data.data.contiguous().view(-1).view(dtype)
        axis = -2
    valid = list(data.valid)
    valid[axis] = valid[axis] * data.data.itemsize // dtype.itemsize
    is_whole = data.valid == tuple(data.data.shape)
    return _Value(seen.reshape(tuple(full)), tuple(full) if is_whole else valid)


@spells("tensor.view")
def _seen(
    dtype: Any, tensor: _Value, shape: Sequence[int] | None = None, valid_shape: Sequence[int] | None = None,
    layout: str | None = None, part: Any = None, full: Any = None, turns: Any = None,
) -> _Value:  # fmt: skip
    """Return a tensor's memory in another shape, or with its last two axes swapped."""
    before, after = turns
    data, valid = tensor.data, list(tensor.valid)
    if shape is None:
        if before != after:
            data, valid[-2:] = data.transpose(-1, -2), valid[:-3:-1]
    else:
        packed = data.transpose(-1, -2) if before else data
        in_memory = (*shape[:-2], shape[-1], shape[-2]) if after else tuple(shape)
        data = packed.view(in_memory).transpose(-1, -2) if after else packed.view(in_memory)
        valid = list(data.shape)
    return _Value(data, valid if valid_shape is None else valid_shape)
