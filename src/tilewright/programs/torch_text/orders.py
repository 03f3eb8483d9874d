# pyright: reportPrivateUsage=false, reportUnusedFunction=false
"""Orders in torch text: pairs sorted and merged, and words in random order; see `values` for how it is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.programs.torch_text.spelled import spells
from tilewright.programs.torch_text.values import _embedded, _exact, _Value, _words

torch: Any = None  # what the text imports


def _keys(values: Any) -> tuple[Any, Any]:
    """Return keys whose ascending order is the descending one of values, NaN first; the last key counts first."""
    unordered = torch.isnan(values)
    return torch.where(unordered, 0.0, -values.to(torch.float64)) + 0.0, ~unordered


def _as_values(numbers: Any, dtype: Any) -> Any:
    """Return the low bits of numbers as elements of a type."""
    return numbers.to(torch.int64).to(torch.int16 if dtype.itemsize == 2 else torch.int32).view(dtype)


@spells("tile.sort32", "tensor.sort32")
def _sorted_runs(dtype: Any, src: _Value, idx: _Value) -> _Value:
    """Return runs of 32 elements in descending order, each beside its index, the smaller one of equals first."""
    values, numbers, runs = src.live(), idx.live().to(torch.int64), [src.live()[..., :0]]
    for at in range(0, values.shape[-1], 32):
        run, its = values[..., at : at + 32], numbers[..., at : at + 32]
        order = torch.argsort(its, dim=-1, stable=True)
        for key in _keys(run):
            order = order.gather(-1, torch.argsort(key.gather(-1, order).to(torch.float64), dim=-1, stable=True))
        pairs = torch.stack([run.gather(-1, order), _as_values(its.gather(-1, order), dtype)], -1)
        runs.append(pairs.reshape(*run.shape[:-1], 2 * run.shape[-1]))
    return _embedded(torch.cat(runs, -1), (*src.data.shape[:-1], 2 * src.data.shape[-1]), dtype)


def _merged(lists: Sequence[Any]) -> Any:
    """Return lists of pairs as one, row by row: the largest of the first ones left, of equal ones the first list's."""
    if lists[0].ndim > 1:
        rows = [_merged([each[row] for each in lists]) for row in range(len(lists[0]))]
        return torch.stack(rows) if rows else torch.cat(list(lists), -1)
    keys = [list(zip(*(key.tolist() for key in reversed(_keys(each[::2]))), strict=True)) for each in lists]
    taken: list[Any] = []
    heads = [0] * len(lists)
    while any(head < len(its) for head, its in zip(heads, keys, strict=True)):
        left = [which for which, head in enumerate(heads) if head < len(keys[which])]
        best = min(left, key=lambda which: keys[which][heads[which]])
        taken.append(lists[best][2 * heads[best] : 2 * heads[best] + 2])
        heads[best] += 1
    return torch.cat(taken) if taken else torch.cat(list(lists))


@spells("tile.mrgsort", "tensor.mrgsort")
def _merged_runs(
    dtype: Any, src0: _Value, src1: Any = None, src2: Any = None, src3: Any = None, tmp: Any = None,
    exhausted: bool = False, block_len: int | None = None,
) -> _Value:  # fmt: skip
    """Return lists of pairs merged into one, or every four neighbouring runs of one list."""
    if block_len is None:
        given = [each for each in (src0, src1, src2, src3) if each is not None]
        shape = (*src0.data.shape[:-1], sum(each.data.shape[-1] for each in given)) if tmp is None else tmp.data.shape
        return _embedded(_merged([each.live() for each in given]), shape, dtype)
    live, four = src0.live().clone(), 4 * block_len
    for at in range(0, live.shape[-1] // four * four, four):
        live[..., at : at + four] = _merged(list(live[..., at : at + four].split(block_len, -1)))
    return _embedded(live, src0.data.shape, dtype)


def _order(x: _Value, axis: int, descending: bool) -> Any:
    """Return the places of elements in order, NaN the largest; of equal ones the first comes first either way."""
    return torch.sort(_exact(x.live()), dim=axis, descending=descending, stable=True).indices


@spells("tile.sort", "tensor.sort")
def _sorted(dtype: Any, x: _Value, axis: int, descending: bool) -> _Value:
    """Return the elements along an axis in order."""
    return _embedded(_words(x.live()).gather(axis, _order(x, axis, descending)).view(dtype), x.data.shape, dtype)


@spells("tile.argsort", "tensor.argsort")
def _places_in_order(dtype: Any, x: _Value, axis: int, descending: bool) -> _Value:
    """Return the places of the elements along an axis in their order."""
    return _embedded(_order(x, axis, descending), x.data.shape, dtype)


@spells("tile.row_topk")
def _first_of_rows(dtype: Any, x: _Value, k: int, largest: bool) -> tuple[_Value, _Value]:
    """Return the first elements of each row in order, and the columns they are in."""
    if x.valid[-1] < k:
        raise ValueError(f"there are fewer valid elements along the axis than {k}")
    order, shape = _order(x, -1, largest)[..., :k], (*x.data.shape[:-1], k)
    best = _words(x.live()).gather(-1, order).view(x.data.dtype)
    return _embedded(best, shape, best.dtype), _embedded(order, shape, torch.int32)


@spells("tile.random", "tensor.random")
def _random(
    _dtype: Any, shape: Sequence[int], dtype: Any = None, rounds: int = 10, valid_shape: Any = None, **words: int
) -> _Value:
    """Return random words that depend on a key and a counter alone: Philox, as the papers have it."""
    mask, rows, columns = 0xFFFFFFFF, *(shape if valid_shape is None else valid_shape)
    gap = 64 * (-(-columns // 256) - 1) + (columns - 1) % 64 + 1 if columns else 0
    carry = torch.arange(rows)[:, None] * gap + torch.arange(-(-columns // 4))
    block: list[Any] = []
    for word in range(4):
        low = (carry & mask) + (words[f"counter{word}"] & mask)
        block.append(low & mask)
        carry = (carry >> 32) + (low >> 32)
    a, b, c, d = block
    for turn in range(rounds):
        k0, k1 = (words["key0"] + turn * 0x9E3779B9) & mask, (words["key1"] + turn * 0xBB67AE85) & mask
        low, high = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (high >> 32 & mask) ^ b ^ k0, high & mask, (low >> 32 & mask) ^ d ^ k1, low & mask
    mixed = torch.stack([a, b, c, d], -1).reshape(rows, 4 * a.shape[1])[:, :columns]
    return _embedded(mixed, shape, _dtype)
