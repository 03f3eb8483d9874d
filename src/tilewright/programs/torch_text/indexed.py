# pyright: reportPrivateUsage=false, reportUnusedFunction=false
"""Indexed memory in torch text: rows or elements read and written by number; see `values` for how it is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.programs.torch_text.places import _inside
from tilewright.programs.torch_text.spelled import spells
from tilewright.programs.torch_text.values import _constant, _embedded, _number, _Value, _words

torch: Any = None  # what the text imports


def _named(
    x: _Value, indices: _Value, given: Any, mask: _Value | None, axis: int | None
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return elements for the places that indices name, which of them a mask picks, and where those lie in a tensor."""
    by_row = axis == 0 and x.data.ndim > 1
    dtype, named = x.data.dtype, (math.prod(indices.valid), *x.data.shape[1:]) if by_row else indices.valid
    live = given.live() if isinstance(given, _Value) else _constant(named, _number(given, dtype), dtype)
    extents = live.shape[:1] if by_row else live.shape
    index, picked = (_first(each, by_row, extents) for each in (indices, mask))
    axes = x.data.shape[:1] if axis == 0 else x.data.shape
    numbers = _inside(index[picked], math.prod(axes))
    window = tuple(slice(0, extent) for extent in live.shape[1:]) if by_row else ()
    return live, picked, (*(torch.unravel_index(numbers, axes) if len(numbers) else (numbers,) * len(axes)), *window)


def _first(value: _Value | None, in_line: bool, extents: Sequence[int]) -> Any:
    """Return as many of the elements that a value holds as are asked for, True without one."""
    if value is None:
        return torch.ones(tuple(extents), dtype=torch.bool)
    live = value.live().reshape(-1) if in_line else value.live()
    if any(have < want for have, want in zip(live.shape, extents, strict=True)):
        raise IndexError(f"{list(live.shape)} indices are fewer than {list(extents)}")
    return live[tuple(slice(0, extent) for extent in extents)]


@spells("tile.take")
def _taken(
    dtype: Any, x: _Value, indices: _Value, mask: _Value | None = None, pad: Any = 0, axis: int | None = None,
    full: Sequence[int] = (),
) -> _Value:  # fmt: skip
    """Return the rows or elements of a tensor that indices name, a number where a mask leaves them out."""
    live, picked, places = _named(x, indices, pad, mask, axis)
    _words(live)[picked] = _words(x.data)[places]
    return _embedded(live, full, dtype)


@spells("tile.put")
def _put_where(
    dtype: Any, x: _Value, indices: _Value, values: Any, mask: _Value | None = None, axis: int | None = None
) -> _Value:
    """Write the rows or elements of a tensor that indices name, one after the other; return the tensor."""
    live, picked, places = _named(x, indices, values, mask, axis)
    target = _words(x.data)
    for number, element in enumerate(_words(live)[picked]):
        target[tuple(place if isinstance(place, slice) else place[number] for place in places)] = element
    return x
