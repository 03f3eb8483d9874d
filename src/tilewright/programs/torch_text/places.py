# pyright: reportPrivateUsage=false, reportUnusedFunction=false
"""Places in torch text: elements found, gathered and scattered by where they are; see `values` for how it is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.programs.torch_text.spelled import spells
from tilewright.programs.torch_text.values import _constant, _embedded, _exact, _number, _Value

torch: Any = None  # what the text imports


def _position(dtype: Any, x: _Value, axis: int, combine: str) -> _Value:
    """Return where along an axis the first largest or smallest element is, or the first NaN."""
    live = _exact(x.live())
    if not live.shape[axis]:
        raise ValueError("an axis of which nothing is valid has no largest element")
    best = live.amax(axis, keepdim=True) if combine == "maximum" else live.amin(axis, keepdim=True)
    is_best = torch.where(torch.isnan(best), torch.isnan(live), live == best)
    shape = [1 if n == axis % live.ndim else s for n, s in enumerate(x.data.shape)]
    return _embedded(is_best.to(torch.int64).argmax(axis, keepdim=True), shape, dtype)


def _repeated(vec: _Value, x: _Value) -> _Value:
    """Return what each row holds again and again, as far as another value reaches."""
    width = x.data.shape[-1]
    columns = torch.arange(width) % max(vec.valid[-1], 1)
    return _Value(vec.data[..., columns], (*vec.valid[:-1], width))


def _inside(indices: Any, extent: int) -> Any:
    """Return indices; IndexError where one points at nothing."""
    if ((indices < 0) | (indices >= extent)).any():
        raise IndexError(f"an index lies outside 0 to {extent}")
    return indices.to(torch.int64)


def _pattern(mask_pattern: int) -> tuple[int, int]:
    """Return the first column that a pattern takes, and how far apart they are."""
    return ((0, 2), (1, 2), (0, 4), (1, 4), (2, 4), (3, 4), (0, 1))[mask_pattern - 1]


@spells("tile.gather")
def _gathered(dtype: Any, src: _Value, indices: _Value, tmp: Any = None) -> _Value:
    """Return for each index the element with that number, counted along rows."""
    numbers = _inside(indices.live(), src.data.numel())
    return _embedded(src.data.reshape(-1)[numbers], indices.data.shape, dtype)


@spells("tile.gather_mask")
def _columns(dtype: Any, src: _Value, mask_pattern: int, output_dtype: Any = None) -> _Value:
    """Return the columns that a pattern takes, side by side, their bits read as another type."""
    first, step = _pattern(mask_pattern)
    picked = src.data[:, first::step].contiguous()
    return _Value(picked.view(dtype), (src.valid[0], max(0, -((first - src.valid[1]) // step))))


@spells("tile.gather_compare")
def _matching(
    _dtype: Any, src: _Value, kvalue: Any, tmp: Any = None, cmp_mode: Any = "eq", offset: int = 0,
    out_cols: int | None = None, count_dtype: Any = None,
) -> tuple[_Value, _Value]:  # fmt: skip
    """Return for each row the places of elements that compare so, zeros after the last, and how many there are."""
    names = ("eq", "ne", "lt", "le", "gt", "ge")
    test = getattr(torch, names[cmp_mode] if isinstance(cmp_mode, int) else cmp_mode)
    live, width = src.live(), out_cols or 0
    matches = test(_exact(live), _exact(torch.tensor(_number(kvalue, live.dtype), dtype=live.dtype)))
    places = torch.zeros(src.data.shape[0], width, dtype=torch.int32)
    counts = torch.zeros(1, src.data.shape[0], dtype=count_dtype or torch.int32)
    for row, flags in enumerate(matches):
        found = flags.nonzero().flatten()[:width]
        places[row, : len(found)] = (found + offset).to(torch.int32)
        counts[0, row] = int(flags.sum())
    return _Value(places, (src.valid[0], width)), _Value(counts, (1, src.valid[0]))


@spells("tensor.gather")
def _gathered_along(
    dtype: Any, input: _Value, dim: int | None = None, index: _Value | None = None, mask_pattern: Any = None,
    output_dtype: Any = None, kvalue: Any = None, cmp_mode: Any = None, out_cols: Any = None, offset: int = 0,
    count_dtype: Any = None,
) -> Any:  # fmt: skip
    """Return elements of a tensor by index along an axis, by pattern, or the places of those that compare so."""
    if kvalue is not None:
        return _matching(dtype, input, kvalue, None, cmp_mode, offset, out_cols, count_dtype)
    if index is None:
        return _columns(dtype, input, mask_pattern)
    axis = (dim or 0) % input.data.ndim
    numbers = _inside(index.live(), input.data.shape[axis])
    window = tuple(slice(None) if n == axis else slice(0, size) for n, size in enumerate(numbers.shape))
    return _embedded(torch.gather(input.data[window], axis, numbers), index.data.shape, dtype)


def _put(target: Any, elements: Any, numbers: Any) -> None:
    """Write elements to places, counted along rows, one after the other: the last one stays."""
    shape = tuple(target.shape)
    for element, number in zip(elements.reshape(-1), numbers.reshape(-1).tolist(), strict=True):
        place: list[int] = []
        for extent in reversed(shape):
            number, rest = divmod(number, extent)
            place.insert(0, rest)
        target[tuple(place)] = element


def _held(indices: _Value, like: _Value) -> Any:
    """Return the indices of what another value holds."""
    return indices.data[tuple(slice(0, extent) for extent in like.valid)]


@spells("tile.scatter")
def _scattered(dtype: Any, dst: _Value, src: _Value, indexes: _Value) -> _Value:
    """Return a tile with elements of another one where their indices say."""
    made = _Value(dst.data.clone(), dst.valid)
    _put(made.data, src.live(), _inside(_held(indexes, src), made.data.numel()))
    return made


@spells("tile.mscatter")
def _scattered_into(dtype: Any, src: _Value, idx: _Value, output_tensor: _Value) -> _Value:
    """Write elements of a tile into a tensor where their indices say; return the tensor."""
    _put(output_tensor.data, src.live(), _inside(_held(idx, src), output_tensor.data.numel()))
    return output_tensor


@spells("tile.scatter_mask")
def _spread(dtype: Any, dst: _Value, src: _Value, mask_pattern: int) -> _Value:
    """Return a tile with another one in the columns that a pattern takes."""
    first, step = _pattern(mask_pattern)
    if list(dst.data.shape) != [src.data.shape[0], src.data.shape[1] * step]:
        raise ValueError(f"a pattern cannot put {list(src.data.shape)} into {list(dst.data.shape)}")
    made, live = _Value(dst.data.clone(), dst.valid), src.live()
    made.data[: live.shape[0], first : first + live.shape[1] * step : step] = live
    return made


@spells("tensor.scatter")
def _scattered_along(
    dtype: Any, input: _Value, dim: Any = None, index: _Value | None = None, src: _Value | None = None,
    mask_pattern: Any = None, dst: _Value | None = None,
) -> _Value:  # fmt: skip
    """Return a tensor with elements of another one in other columns, by index or by pattern."""
    if dst is not None:
        return _spread(dtype, dst, input, mask_pattern)
    assert index is not None and src is not None
    made = _Value(input.data.clone(), input.valid)
    columns = _inside(index.live(), input.data.shape[1])
    rows = torch.arange(columns.shape[0]).unsqueeze(1)
    _put(made.data, src.live(), rows * made.data.shape[1] + columns)
    return made


@spells("tile.mgather")
def _fetched(
    dtype: Any, mem: _Value, idx: _Value, coalesce: Any = "row", gather_oob: Any = "undefined",
    target_memory: Any = None, scratch: Any = None, valid_shape: Sequence[int] | None = None,
) -> _Value:  # fmt: skip
    """Return rows or single elements of a tensor by their numbers."""
    by_row = coalesce in ("row", 0)
    mode = ("undefined", "clamp", "wrap", "zero")[gather_oob] if isinstance(gather_oob, int) else gather_oob
    shape = (idx.data.numel(), mem.data.shape[-1]) if by_row else tuple(idx.data.shape)
    rows, columns = valid_shape or shape
    index = idx.live().reshape(-1)[:rows] if by_row else idx.live()[:rows, :columns]
    flat = mem.data.reshape(-1, mem.data.shape[-1])[:, :columns] if by_row else mem.data.reshape(-1)
    numbers, count = index.to(torch.int64) & 0xFFFFFFFF, flat.shape[0]
    if mode == "undefined":
        _inside(numbers, count)
    taken = {"clamp": numbers.clamp(max=count - 1), "wrap": numbers % max(count, 1)}.get(mode, numbers)
    there = taken < count
    live = flat[torch.where(there, taken, 0)] if count else _constant((*index.shape, *flat.shape[1:]), 0, dtype)
    return _embedded(torch.where(there.unsqueeze(-1) if by_row else there, live, live * 0), shape, dtype)


@spells("tensor.expand_clone")
def _cloned(dtype: Any, src: _Value, target: _Value) -> _Value:
    """Fill a tensor with another one, repeated along the axis that has one element there; return it."""
    pairs = zip(src.data.shape, target.data.shape, src.valid, strict=True)
    box = [want if have == 1 else valid for have, want, valid in pairs]
    place = target.data[tuple(slice(0, extent) for extent in box)]
    place.copy_(torch.broadcast_to(src.live().clone().to(dtype), box))
    return target


@spells("tensor.paged_gather")
def _paged(
    dtype: Any, src: _Value, indices: _Value, block_table: _Value, block_size: int, size: int, max_indices: int,
    space: Any = None, col_off: int = 0, is_trans: bool = False, is_b_matrix: bool = False,
) -> _Value:  # fmt: skip
    """Return rows of a paged tensor by their numbers, a table saying where each page lies."""
    numbers, table = (each.live().reshape(-1).to(torch.int64) for each in (indices, block_table))
    if len(numbers) > max_indices or not 0 <= col_off <= src.data.shape[1] - size:
        raise IndexError(f"{len(numbers)} rows of {size} columns from {col_off} on are not there")
    pages = table[_inside(numbers, len(table) * block_size) // block_size]
    rows = _inside(pages * block_size + numbers % block_size, src.data.shape[0])
    made = torch.zeros(max_indices, size, dtype=dtype)
    made[: len(rows)] = src.data[:, col_off : col_off + size][rows]
    return _Value(made.T.contiguous() if is_trans else made)


def _rows_put(target: _Value, index: _Value, src: _Value) -> _Value:
    """Write rows to where their indices say, one after the other: the last one stays."""
    axes = 1 if target.data.ndim == 2 else 2
    into, given = (each.data.reshape(-1, *each.data.shape[axes:]) for each in (target, src))
    window = tuple(slice(0, extent) for extent in src.valid[axes:])
    made = into.clone()
    for r in range(index.valid[0]):
        for c in range(index.valid[1]):
            row = _inside(index.data[r, c], len(made))
            made[(row, *window)] = given[(r * index.data.shape[1] + c, *window)]
    target.data.copy_(made.reshape(target.data.shape))
    return target


@spells("tensor.scatter_update")
def _rows_updated(dtype: Any, input: _Value, dim: int, index: _Value, src: _Value) -> _Value:
    """Write rows into a tensor where their indices say; return the tensor."""
    return _rows_put(input, index, src)


@spells("tile.scatter_update")
def _rows_replaced(dtype: Any, input: _Value, dim: int, index: _Value, src: _Value) -> _Value:
    """Return a tile with other rows where their indices say."""
    return _rows_put(_Value(input.data.clone(), input.valid), index, src)


def _box_put(
    target: _Value, src: _Value, dst_offset: Sequence[int], src_offset: Sequence[int], size: Sequence[int], turned: bool
) -> _Value:
    """Write a window of one value into another, its axes swapped or not; return that."""
    live = src.data[tuple(slice(at, at + n) for at, n in zip(src_offset, size, strict=True))]
    given = live.clone().T if turned else live.clone()
    place = target.data[tuple(slice(at, at + n) for at, n in zip(dst_offset, given.shape, strict=True))]
    if tuple(live.shape) != tuple(size) or place.shape != given.shape or min((*dst_offset, *src_offset)) < 0:
        raise IndexError(f"a window of {list(size)} does not fit")
    place.copy_(given)
    return target


@spells("tensor.gather_row")
def _row_put(
    dtype: Any, dst: _Value, src: _Value, dst_offset: Sequence[int], src_offset: Sequence[int], shapes: Sequence[int],
    transpose: bool = False, valid_shape: Sequence[int] | None = None,
) -> _Value:  # fmt: skip
    """Write a window of one tensor into another; return that."""
    return _box_put(dst, src, dst_offset, src_offset, valid_shape or shapes, transpose)


@spells("tile.gather_row")
def _row_replaced(
    dtype: Any, dst: _Value, src: _Value, dst_offset: Sequence[int], src_offset: Sequence[int], shapes: Sequence[int],
    transpose: bool = False, valid_shape: Sequence[int] | None = None,
) -> _Value:  # fmt: skip
    """Return a tile with a window of a tensor in it."""
    return _row_put(
        dtype, _Value(dst.data.clone(), dst.valid), src, dst_offset, src_offset, shapes, transpose, valid_shape
    )


@spells("tile.gatherb")
def _blocks_of(dtype: Any, src: _Value, offset: _Value, output_dtype: Any = None) -> _Value:
    """Return for each offset the 32 bytes from there on, as elements of a type."""
    places = offset.live().to(torch.int64)
    held = src.data.contiguous().view(-1).view(torch.uint8)
    blocks = held[_inside(places, len(held) - 31).unsqueeze(-1) + torch.arange(32)]
    lanes = 32 // dtype.itemsize
    live = blocks.reshape(places.shape[0], places.shape[1] * 32).view(dtype)
    return _embedded(live, (offset.data.shape[0], offset.data.shape[1] * lanes), dtype)
