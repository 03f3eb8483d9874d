# pyright: reportPrivateUsage=false, reportUnusedFunction=false
"""Memory in torch text: values made, moved, read and written; see `values` for how these functions are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.programs.torch_text.spelled import spells
from tilewright.programs.torch_text.values import _constant, _embedded, _exact, _number, _padding, _rounded, _Value

torch: Any = None  # what the text imports


@spells("tile.load")
def _load(
    dtype: Any, tensor: _Value, offsets: Sequence[int], shapes: Sequence[int], valid_shape: Any = None,
    target_memory: Any = None, clamp: bool = False, pad: Any = None, mask: Any = None,
) -> _Value:  # fmt: skip
    """Return the elements of a tensor from `offsets` on, as many as are there, or a number in place of the rest."""
    if mask is not None:
        filled = _Value(_constant(shapes, 0 if pad is None else _padding(pad, dtype), dtype))
        own = mask.data.expand(tuple(shapes)).nonzero(as_tuple=True)
        filled.data[own] = tensor.data[_places(own, offsets, tensor.valid)]
        return filled
    wanted = shapes if valid_shape is None else valid_shape
    spans: list[tuple[int, int]] = []
    for start, want, have in zip(offsets, wanted, tensor.valid, strict=True):
        is_past = start > have or (start == have > 0 and want > 0)
        if pad is None and (start < 0 or (is_past and not clamp)):
            raise IndexError(f"a load of {want} element(s) at {start} starts outside 0 to {have}")
        first = min(max(start, 0), have)
        spans.append((first, max(first, min(start + want, have))))
    live = tensor.data[tuple(slice(first, last) for first, last in spans)]
    if pad is None:
        return _embedded(live, shapes, dtype)
    made = _Value(_constant(shapes, _padding(pad, dtype), dtype))
    if live.numel():
        made.data[tuple(slice(a - s, b - s) for (a, b), s in zip(spans, offsets, strict=True))] = live
    return made


def _places(own: Sequence[Any], offsets: Sequence[int], extents: Sequence[int]) -> tuple[Any, ...]:
    """Return where the elements that a mask admits lie in a tensor."""
    places = tuple(indices + start for indices, start in zip(own, offsets, strict=True))
    if any(((found < 0) | (found >= extent)).any() for found, extent in zip(places, extents, strict=True)):
        raise IndexError("a mask is True where its tensor has no element")
    return places


def _written(target: _Value, live: Any, offsets: Sequence[int], atomic: str) -> _Value:
    """Write elements into a value, or add them to what is there, all read before any is written; return it."""
    live = live.reshape((1,) * (target.data.ndim - live.ndim) + tuple(live.shape))
    for start, size, extent in zip(offsets, live.shape, target.data.shape, strict=True):
        if start < 0 or start + size > extent:
            raise IndexError(f"a store of {size} element(s) at {start} does not fit 0 to {extent}")
    place = target.data[tuple(slice(s, s + n) for s, n in zip(offsets, live.shape, strict=True))]
    if live.untyped_storage().data_ptr() == place.untyped_storage().data_ptr():
        live = live.clone()
    place.copy_(_rounded(_exact(place) + _exact(live), place.dtype) if atomic == "Add" else _rounded(live, place.dtype))
    return target


@spells("tile.store")
def _store(
    dtype: Any, tile: _Value, offsets: Sequence[int], output_tensor: _Value, shapes: Any = None, atomic: str = "None_",
    mask: Any = None,
) -> _Value:  # fmt: skip
    """Write what a tile holds into a tensor; return the tensor."""
    if mask is not None:
        leading = output_tensor.data.ndim - tile.data.ndim
        own = mask.data.expand(tile.data.shape)[tuple(slice(0, n) for n in tile.valid)].nonzero(as_tuple=True)
        every = (*(torch.zeros_like(own[-1]),) * leading, *own)
        output_tensor.data[_places(every, offsets, output_tensor.data.shape)] = _rounded(tile.live()[own], dtype)
        return output_tensor
    live = tile.live() if shapes is None else tile.live().reshape(tuple(shapes))
    return _written(output_tensor, live, offsets, atomic)


@spells("tensor.assemble")
def _assemble(dtype: Any, target: _Value, source: _Value, offset: Sequence[int], atomic: str = "None_") -> _Value:
    """Write a value into a tensor; return the tensor."""
    return _written(target, source.live(), offset, atomic)


@spells("tile.assemble")
def _assembled(dtype: Any, target: _Value, source: _Value, offset: Sequence[int], atomic: str = "None_") -> _Value:
    """Return a tile with another one written into it."""
    sizes = (1,) * (target.data.ndim - source.data.ndim) + source.valid
    ends = [v if 0 in sizes else max(v, at + n) for v, at, n in zip(target.valid, offset, sizes, strict=True)]
    return _written(_Value(target.data.clone(), ends), source.live(), offset, atomic)


@spells("tile.move")
def _moved(dtype: Any, tile: _Value, **_: Any) -> _Value:
    """Return a tile as it is: memory spaces are one here."""
    return tile


@spells("tensor.create", "tile.create", "tensor.create_l1")
def _created(_dtype: Any, shape: Sequence[int], dtype: Any, init_value: Any = None, **_: Any) -> _Value:
    """Return new elements, zero where nobody says what they are."""
    return _Value(_constant(shape, _number(init_value or 0, dtype), dtype))


@spells("tensor.full", "tile.full")
def _full(_dtype: Any, shape: Sequence[int], dtype: Any, value: Any, valid_shape: Any = None) -> _Value:
    """Return new elements that are all one number."""
    return _Value(_constant(shape, _number(value, dtype), dtype), shape if valid_shape is None else valid_shape)


@spells("tensor.read", "tile.read")
def _read(dtype: Any, x: _Value, indices: Sequence[int]) -> Any:
    """Return one element."""
    _check_index(x, indices)
    return x.data[tuple(indices)].item()


@spells("tensor.write")
def _write(dtype: Any, x: _Value, indices: Sequence[int], value: Any) -> _Value:
    """Set one element of a tensor; return the tensor."""
    _check_index(x, indices)
    x.data[tuple(indices)] = _number(value, dtype)
    return x


@spells("tile.write")
def _changed(dtype: Any, x: _Value, indices: Sequence[int], value: Any) -> _Value:
    """Return a tile with one element set."""
    return _write(dtype, _Value(x.data.clone(), x.valid), indices, value)


def _check_index(x: _Value, indices: Sequence[int]) -> None:
    """Raise IndexError for an element that is not there."""
    if any(not 0 <= index < extent for index, extent in zip(indices, x.data.shape, strict=True)):
        raise IndexError(f"index {list(indices)} lies outside {list(x.data.shape)}")


@spells("tensor.dim")
def _dim(dtype: Any, tensor: _Value, axis: int, valid: bool = False) -> int:
    """Return an extent."""
    return tensor.valid[axis] if valid else tensor.data.shape[axis]


@spells("tensor.as_strided")
def _as_strided(
    _dtype: Any, buffer: _Value, shape: Sequence[int], strides: Sequence[int], offset: int, dtype: Any
) -> _Value:
    """Return the memory of a buffer from a byte on as other elements."""
    held = buffer.data.view(torch.uint8)
    reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + 1 if all(shape) else 0
    if offset < 0 or offset + reach * dtype.itemsize > held.numel():
        raise IndexError(f"bytes {offset} to {offset + reach * dtype.itemsize} lie outside {held.numel()}")
    elements = held[offset : offset + reach * dtype.itemsize].view(dtype)
    return _Value(torch.as_strided(elements, tuple(shape), tuple(strides)))


@spells("array.create")
def _array(_dtype: Any, extent: int, dtype: Any = None) -> list[Any]:
    """Return an array of zeros."""
    return [0] * extent


@spells("array.get_element")
def _element(dtype: Any, array: list[Any], index: int) -> Any:
    """Return one element of an array."""
    if not 0 <= index < len(array):
        raise IndexError(f"index {index} lies outside 0 to {len(array)}")
    return array[index]


@spells("array.update_element")
def _updated(dtype: Any, array: list[Any], index: int, value: Any) -> list[Any]:
    """Return an array with one element replaced."""
    _element(dtype, array, index)
    return [*array[:index], value if dtype is None else _number(value, dtype), *array[index + 1 :]]


_BLOCKS = [(0, 1)]
"""The blocks of the grids that are running, the innermost last: its index, and how many there are."""


def _blocks(count: int) -> Iterator[int]:
    """Let each block of a grid be the current one, one after the other."""
    for index in range(count):
        _BLOCKS.append((index, count))
        try:
            yield index
        finally:
            _BLOCKS.pop()


@spells("tile.get_block_idx", "tensor.get_block_idx")
def _block_index(dtype: Any) -> int:
    """Return the current block."""
    return _BLOCKS[-1][0]


@spells("tile.get_block_num", "tensor.get_block_num")
def _block_count(dtype: Any) -> int:
    """Return how many blocks there are."""
    return _BLOCKS[-1][1]


@spells("tile.get_subblock_idx", "tensor.get_subblock_idx", "system.task_dummy")
def _zero(dtype: Any, **_: Any) -> int:
    """Return zero: there is one lane, and no task is waited for."""
    return 0


@spells("system.available_cluster_count", "system.available_aiv_count", "system.available_thread_count")
def _one(dtype: Any) -> int:
    """Return one."""
    return 1


@spells("system.task_invalid")
def _no_task(dtype: Any) -> int:
    """Return the id of no task."""
    return -1


@spells("system.device_assert")
def _asserted(dtype: Any, condition: bool, message: str) -> None:
    """Raise RuntimeError where a condition does not hold."""
    if not condition:
        raise RuntimeError(message)


@spells(*(f"system.{name}" for name in ("bar_v", "bar_m", "bar_all", "fence", "set_ffts", "syncall", "cacheinvalid")))
@spells(*(f"system.sync_{name}" for name in ("src", "dst", "set", "wait")))
def _nothing(dtype: Any, **_: Any) -> None:
    """Do nothing: statements run in order."""
