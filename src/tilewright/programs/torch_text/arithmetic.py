# pyright: reportPrivateUsage=false, reportUnusedFunction=false
"""Arithmetic in torch text: whole tiles folded, multiplied, compared and converted; see `values` for how it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.programs.torch_text.spelled import spells
from tilewright.programs.torch_text.values import (
    _common_valid,
    _each,
    _embedded,
    _exact,
    _limits,
    _number,
    _promoted,
    _rounded,
    _Value,
)

torch: Any = None  # what the text imports


def _folded(dtype: Any, x: _Value, axis: int, combine: str, start: Any) -> _Value:
    """Return an axis folded to one element, rounded at the end."""
    live = _exact(x.live())
    folds = {
        "add": lambda: live.sum(axis, keepdim=True),
        "multiply": lambda: live.prod(axis, keepdim=True),
        "maximum": lambda: live.amax(axis, keepdim=True),
        "minimum": lambda: live.amin(axis, keepdim=True),
    }
    shape = list(live.shape)
    shape[axis] = 1
    result = folds[combine]() if live.shape[axis] else torch.full(shape, start, dtype=live.dtype)
    return _embedded(result, [1 if n == axis % live.ndim else s for n, s in enumerate(x.data.shape)], dtype)


def _folded_stepwise(dtype: Any, x: _Value, axis: int, combine: str, start: Any, in_pairs: bool) -> _Value:
    """Return an axis folded to one element, rounded after every step: from the first on, or neighbours first."""
    fold: Callable[..., Any] = {"add": torch.add, "multiply": torch.mul}.get(combine) or getattr(torch, combine)
    live = x.live()
    rows = list(live.movedim(axis, 0))
    if not in_pairs or not rows:
        result = torch.full_like(live.movedim(axis, 0).sum(0), start, dtype=dtype)
        for row in rows:
            result = fold(result, row)
        rows = [result]
    while len(rows) > 1:
        last = rows[-1] if len(rows) % 2 else None
        rows = [fold(a, b) for a, b in zip(rows[::2], rows[1::2], strict=False)]
        rows[0] = rows[0] if last is None else fold(rows[0], last)
    shape = [1 if n == axis % live.ndim else s for n, s in enumerate(x.data.shape)]
    return _embedded(rows[0].unsqueeze(axis), shape, dtype)


def _scanned(dtype: Any, x: _Value, axis: int, reverse: bool, combine: str) -> _Value:
    """Return what all elements up to each one along an axis fold to, or from each one on, rounded where stored."""
    live = _exact(x.live()).flip(axis) if reverse else _exact(x.live())
    scans = {
        "add": lambda: live.cumsum(axis),
        "multiply": lambda: live.cumprod(axis),
        "maximum": lambda: live.cummax(axis).values,
        "minimum": lambda: live.cummin(axis).values,
    }
    steps = scans[combine]() if live.numel() else live
    return _embedded(steps.flip(axis) if reverse else steps, x.data.shape, dtype)


def _product(lhs: _Value, rhs: _Value, a_trans: bool = False, b_trans: bool = False) -> tuple[Any, list[int]]:
    """Return the exact product of what two values hold, and the shape of the whole product."""
    a, b = (v.live().mT if is_turned else v.live() for v, is_turned in ((lhs, a_trans), (rhs, b_trans)))
    rows, columns = lhs.data.shape[-1 if a_trans else -2], rhs.data.shape[-2 if b_trans else -1]
    if a.shape[-1] > b.shape[-2]:
        raise ValueError(f"a product of {a.shape[-1]} columns and {b.shape[-2]} rows reads data that is not there")
    a, b = _exact(a), _exact(b[..., : a.shape[-1], :])
    common = torch.promote_types(a.dtype, b.dtype)
    batch = torch.broadcast_shapes(lhs.data.shape[:-2], rhs.data.shape[:-2])
    return torch.matmul(a.to(common), b.to(common)), [*batch, rows, columns]


@spells("tile.matmul", "tensor.matmul", "tile.batch_matmul", "tile.gemv")
def _matmul(dtype: Any, lhs: _Value, rhs: _Value, a_trans: bool = False, b_trans: bool = False, **_: Any) -> _Value:
    """Return a matrix product."""
    product, shape = _product(lhs, rhs, a_trans, b_trans)
    if not product.is_floating_point():
        wide = max(each.itemsize for each in (lhs.data.dtype, rhs.data.dtype, dtype)) > 4
        product = product if wide and not dtype.is_floating_point else _rounded(product, torch.int32)
    elif not dtype.is_floating_point:
        product = _rounded(product, torch.float32)
    return _embedded(product, shape, dtype)


@spells("tile.matmul_acc", "tensor.matmul_acc", "tile.batch_matmul_acc", "tile.gemv_acc")
def _matmul_acc(
    dtype: Any, acc: _Value, lhs: _Value, rhs: _Value, a_trans: bool = False, b_trans: bool = False,
    init_cond: Any = None, **_: Any,
) -> _Value:  # fmt: skip
    """Return a matrix product added to what was there, or alone."""
    product, shape = _product(lhs, rhs, a_trans, b_trans)
    if not init_cond:
        product = product + _exact(acc.data[tuple(slice(0, extent) for extent in product.shape)])
    return _embedded(product, shape, dtype)


@spells("tile.matmul_bias", "tile.gemv_bias")
def _matmul_bias(dtype: Any, lhs: _Value, rhs: _Value, bias: _Value, **_: Any) -> _Value:
    """Return a matrix product plus a row."""
    product, shape = _product(lhs, rhs)
    return _embedded(product + _exact(bias.data[:1, : product.shape[-1]]), shape, dtype)


def _flags(lhs: Any, rhs: Any, cmp_type: int, dtype: Any) -> _Value:
    """Return how elements compare, as zeros and ones."""
    test = (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)[cmp_type]
    return _each(test, [lhs, rhs], dtype, torch.uint8)


@spells("tensor.cmp")
def _compared(dtype: Any, lhs: _Value, rhs: Any, cmp_type: int = 0) -> _Value:
    """Return how elements of tensors compare, 0 or 1; a number meets them in a type that holds both."""
    met = lhs.data.dtype if lhs.data.is_floating_point() else torch.int64
    if isinstance(rhs, _Value):
        met = _promoted(lhs.data.dtype, rhs.data.dtype)
    flags = _flags(lhs, rhs, cmp_type, met)
    return _Value(_rounded(flags.data, dtype), flags.valid)


@spells("tile.cmp")
def _mask(dtype: Any, lhs: _Value, rhs: Any, cmp_type: int = 0) -> _Value:
    """Return how elements of tiles compare, as bits, eight columns a byte."""
    met = _promoted(lhs.data.dtype, rhs.data.dtype) if isinstance(rhs, _Value) else lhs.data.dtype
    flags = _flags(lhs, rhs, cmp_type, met)
    live = flags.live().to(torch.int64)
    padded = torch.nn.functional.pad(live, (0, -live.shape[-1] % 8)).reshape(*live.shape[:-1], -1, 8)
    packed = (padded << torch.arange(8)).sum(-1)
    return _embedded(packed, (*flags.data.shape[:-1], (flags.data.shape[-1] + 255) // 256 * 32), torch.uint8)


def _bits(mask: _Value, like: Sequence[int]) -> Any:
    """Return the bits of a mask as conditions, the least significant of each word first."""
    if mask.data.dtype == torch.bool:
        return mask.data[tuple(slice(0, extent) for extent in like)]
    words = mask.data[tuple(slice(0, extent) for extent in like[:-1])].contiguous()
    held = words.view(torch.uint8)[..., : (like[-1] + 7) // 8].to(torch.int64)
    return (held.unsqueeze(-1) >> torch.arange(8) & 1).flatten(-2)[..., : like[-1]].bool()


@spells("tile.sel")
def _selected(dtype: Any, mask: _Value, lhs: _Value, rhs: _Value, tmp: Any = None) -> _Value:
    """Return elements of `lhs` where a bit is set, of `rhs` elsewhere."""
    bits = _bits(mask, _common_valid([lhs, rhs]))

    def chosen(taken: Any, other: Any) -> Any:
        return torch.where(bits, taken, other)

    return _each(chosen, [lhs, rhs], dtype, dtype)


@spells("tile.sels")
def _selected_or(dtype: Any, mask: _Value, src: _Value, tmp: Any = None, scalar: Any = 0) -> _Value:
    """Return elements of `src` where a bit is set, a number elsewhere."""
    other = torch.tensor(_number(scalar, dtype), dtype=dtype)
    return _embedded(torch.where(_bits(mask, src.valid), src.live(), other), src.data.shape, dtype)


@spells("tile.where", "tensor.where")
def _where(dtype: Any, condition: _Value, x: Any, y: Any) -> _Value:
    """Return elements of `x` where a mask is set, of `y` elsewhere."""
    chosen = [each if isinstance(each, _Value) else _Value(torch.tensor(_number(each, dtype))) for each in (x, y)]

    def choose(taken: Any, other: Any, mask: Any) -> Any:
        return torch.where(mask.bool(), taken, other)

    return _each(choose, [*chosen, condition], dtype, dtype)


def _converted(elements: Any, dtype: Any, mode: Any) -> Any:
    """Return elements in another type; floats become integers as `mode` says, and saturate."""
    elements = _exact(elements)
    if not elements.is_floating_point() or dtype.is_floating_point or dtype == torch.bool:
        return elements != 0 if dtype == torch.bool else _rounded(elements, dtype)
    elements = torch.nan_to_num(elements, nan=0.0, posinf=float("inf"), neginf=-float("inf"))
    cut = torch.trunc(elements)
    rounded = {
        "none": torch.round(elements),
        "rint": torch.round(elements),
        "round": cut + torch.where(torch.abs(elements - cut) >= 0.5, torch.sign(elements), 0.0),
        "floor": torch.floor(elements),
        "ceil": torch.ceil(elements),
        "trunc": cut,
        "odd": torch.where((cut != elements) & (cut % 2 == 0), cut + torch.sign(elements), cut),
    }[mode]
    low, high = _limits(dtype)
    held = torch.where((rounded >= float(high)) | (rounded < low), 0.0, rounded)
    held = torch.where(held >= 2.0**63, held - 2.0**64, held).to(torch.int64)  # whose bits are those of a uint64
    top = high if high < 2**63 else -1
    return torch.where(rounded >= float(high), top, torch.where(rounded < low, low, held)).to(dtype)


@spells("tile.cast", "tensor.cast")
def _cast(dtype: Any, x: _Value, target_type: Any, mode: Any = "round") -> _Value:
    """Return a value converted to another element type."""
    return _embedded(_converted(x.live(), dtype, mode), x.data.shape, dtype)


@spells("scalar.cast")
def _cast_number(dtype: Any, x: Any, target_type: Any, mode: Any = "round") -> Any:
    """Return a number converted to another type."""
    if isinstance(x, int):
        return _number(x, dtype)
    return _number(_converted(torch.tensor(x, dtype=torch.float64), dtype, mode).item(), dtype)


@spells("tile.expands", "tensor.expands")
def _expanded(dtype: Any, target: _Value, scalar: Any) -> _Value:
    """Return a number everywhere that a value holds data."""
    return _embedded(torch.full(target.valid, _number(scalar, dtype), dtype=dtype), target.data.shape, dtype)
