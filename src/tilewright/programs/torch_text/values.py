# pyright: reportPrivateUsage=false, reportUnusedFunction=false
"""Values in torch text: what tensors, tiles and numbers are there.

None of this runs here: whatever a text uses of it is copied into the text, which imports torch. So it refers to nothing
but torch, Python and other functions of these files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

torch: Any = None  # what the text imports


class _Value:
    """A tensor or a tile: its elements, and how many of them hold data along each axis."""

    def __init__(self, data: Any, valid: Sequence[int] | None = None) -> None:
        self.data = data
        self.valid = tuple(data.shape if valid is None else valid)

    def live(self) -> Any:
        """Return the part that holds data."""
        return self.data[tuple(slice(0, extent) for extent in self.valid)]


def _value(given: Any) -> Any:
    """Return an argument as the functions below take it."""
    return _Value(given) if isinstance(given, torch.Tensor) else given


def _given_back(results: tuple[Any, ...]) -> Any:
    """Return what a function returns as its caller knows it."""
    plain = tuple(result.data if isinstance(result, _Value) else result for result in results)
    return plain[0] if len(plain) == 1 else plain or None


def _only(results: tuple[Any, ...]) -> Any:
    """Return what a call gives: its only result, or all of them."""
    return results[0] if len(results) == 1 else results


def _checked(value: Any, shape: Sequence[int | None], dtype: Any) -> Any:
    """Return a value that has the shape and element type it was said to have; AssertionError otherwise."""
    fits = all(want in (None, have) for want, have in zip(shape, value.data.shape, strict=True))
    assert fits and value.data.dtype == dtype, f"got {list(value.data.shape)}, {value.data.dtype}; not {shape}, {dtype}"
    return value


def _exact(elements: Any) -> Any:
    """Return elements in a type that holds sums and products of them."""
    return elements.to(torch.float64 if elements.is_floating_point() else torch.int64)


def _rounded(elements: Any, dtype: Any) -> Any:
    """Return elements as `dtype` holds them: floats rounded once, to the nearest, and integers wrapped."""
    if elements.dtype == dtype:
        return elements
    if elements.dtype == torch.float64 and dtype.is_floating_point and dtype.itemsize < 4:
        elements = _odd(elements)
    elif elements.is_floating_point() and not dtype.is_floating_point and dtype != torch.bool:
        elements = torch.nan_to_num(elements).trunc().to(torch.int64)
    if dtype == torch.float8_e8m0fnu:  # powers of two, of which none is zero or less
        elements = torch.where(elements > 0, elements, float("nan"))
    if dtype == torch.float8_e4m3fn:  # which has no infinity for what is too large
        elements = torch.where(elements.abs() > 464, float("nan"), elements)
    return elements.to(dtype)


def _odd(elements: Any) -> Any:
    """Return float64 as float32, an inexact one cut off with its last bit set: rounding it again rounds once."""
    near = elements.to(torch.float32)
    bits = near.view(torch.int32)
    bits = torch.where(near.to(torch.float64).abs() > elements.abs(), bits - 1, bits)
    inexact = (near.to(torch.float64) != elements) & torch.isfinite(elements)
    return torch.where(inexact, bits | 1, bits).view(torch.float32)


def _embedded(live: Any, shape: Sequence[int], dtype: Any) -> _Value:
    """Return a new value of `shape` that holds `live`, and nothing outside of it."""
    made = _Value(torch.zeros(tuple(shape), dtype=dtype), live.shape)
    made.live().copy_(_rounded(live, dtype))
    return made


def _words(elements: Any) -> Any:
    """Return elements as integers of their size, where they lie: torch does not move every type by index."""
    return elements.view((torch.uint8, torch.int16, torch.int32, torch.int64)[elements.element_size().bit_length() - 1])


def _limits(dtype: Any) -> tuple[Any, Any]:
    """Return the least and largest number of an element type."""
    if dtype.is_floating_point:
        high = 448.0 if dtype == torch.float8_e4m3fn else float("inf")  # which has no infinity
        return -high, high
    return (False, True) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)


def _padding(pad: Any, dtype: Any) -> Any:
    """Return the number that stands for what is not there, given as such or by the name of a pl.PadValue."""
    low, high = _limits(dtype)
    return (
        high if pad in ("max", float("inf")) else low if pad in ("min", -float("inf")) else 0 if pad == "zero" else pad
    )


def _constant(shape: Sequence[int], number: Any, dtype: Any) -> Any:
    """Return elements that are all one number."""
    if not dtype.is_floating_point:
        return torch.full(tuple(shape), number, dtype=dtype)
    return _rounded(torch.full(tuple(shape), number, dtype=torch.float64), dtype)


def _promoted(lhs: Any, rhs: Any) -> Any:
    """Return the element type that two of them compare in: floats before integers, and one that holds both."""
    if lhs.is_floating_point != rhs.is_floating_point:
        return lhs if lhs.is_floating_point else rhs
    return torch.promote_types(lhs, rhs) if lhs.is_floating_point else torch.int64


def _by(meaning: Callable[..., Any], lhs: Any, rhs: Any) -> Any:
    """Return what a division of integers gives, and zero where the divisor is."""
    return torch.where(rhs == 0, 0, meaning(lhs, torch.where(rhs == 0, 1, rhs)))


def _times_normal(x: Any) -> Any:
    """Return x times how likely a normally distributed number is to be at most x."""
    return x * (torch.erfc(x * -math.sqrt(0.5)) * 0.5)


def _times_fast_normal(x: Any) -> Any:
    """Return x times how likely a normally distributed number is to be at most x, as networks approximate it."""
    y = x * (1 + 0.044715 * x * x) * math.sqrt(8 / math.pi)
    e = torch.exp(-y.abs())
    return x * (torch.where(y < 0, e, 1) / (1 + e))


def _fused(a: Any, b: Any, c: Any) -> Any:
    """Return a product and a sum, rounded as late as elements are."""
    return a * b + c


def _between(start: Any, end: Any, weight: Any) -> Any:
    """Return the number that is so far between two, counted from the nearer one."""
    return torch.where(weight.abs() < 0.5, start + weight * (end - start), end - (end - start) * (1 - weight))


def _common_valid(values: Sequence[_Value]) -> tuple[int, ...]:
    """Return the part of a broadcast that holds data, which the first value that spans an axis decides."""
    rank = max(value.data.ndim for value in values)
    shapes = [(1,) * (rank - value.data.ndim) + tuple(value.data.shape) for value in values]
    valids = [(1,) * (rank - value.data.ndim) + value.valid for value in values]
    pairs = list(zip(shapes, valids, strict=True))
    spans = [[valid[axis] for shape, valid in pairs if shape[axis] != 1] for axis in range(rank)]
    return tuple(found[0] if found else valids[0][axis] for axis, found in enumerate(spans))


def _met(value: _Value, valid: Sequence[int]) -> Any:
    """Return the elements of a value that a broadcast reads whose result holds `valid`."""
    own = tuple(valid)[len(valid) - value.data.ndim :]
    return value.data[tuple(slice(0, 1 if size == 1 else n) for size, n in zip(value.data.shape, own, strict=True))]


def _operand(value: Any, valid: Sequence[int], dtype: Any) -> Any:
    """Return the elements of an operand, or a number, exactly."""
    if dtype == torch.bool:
        return _rounded(_met(value, valid), dtype) if isinstance(value, _Value) else torch.tensor(bool(value))
    if isinstance(value, _Value):
        return _exact(_rounded(_met(value, valid), dtype))
    if dtype.is_floating_point:
        return _exact(_rounded(torch.tensor(value, dtype=torch.float64), dtype))
    return torch.tensor(_number(value, dtype), dtype=torch.int64)


def _each(meaning: Callable[..., Any], values: Sequence[Any], compute: Any, dtype: Any) -> _Value:
    """Return what `meaning` makes of each element, computed from `compute` and rounded to `dtype`."""
    shaped = [value for value in values if isinstance(value, _Value)]
    shape, valid = torch.broadcast_shapes(*(value.data.shape for value in shaped)), _common_valid(shaped)
    live = meaning(*(_operand(value, valid, compute) for value in values))
    return _embedded(torch.broadcast_to(live, valid), shape, dtype)


def _partly(meaning: Callable[..., Any], lhs: _Value, rhs: _Value, dtype: Any) -> _Value:
    """Return `lhs`, changed by `meaning` where `rhs` holds data; one element serves a whole axis."""
    shape, valid = torch.broadcast_shapes(lhs.data.shape, rhs.data.shape), _common_valid([lhs, rhs])
    first, second = (torch.broadcast_to(_exact(_rounded(value.data, dtype)), shape) for value in (lhs, rhs))
    own = zip(rhs.valid, rhs.data.shape, valid[len(valid) - rhs.data.ndim :], strict=True)
    held = [n if size != 1 else m for n, size, m in own]
    both = tuple(slice(0, min(n, m)) for n, m in zip((*valid[: len(valid) - len(held)], *held), valid, strict=True))
    changed = first.clone()
    changed[both] = _exact(_rounded(meaning(first[both], second[both]), dtype))
    return _embedded(changed[tuple(slice(0, n) for n in valid)], shape, dtype)


def _number(value: Any, dtype: Any) -> Any:
    """Return a number as a scalar of `dtype` holds it: floats rounded, integers wrapped."""
    if dtype == torch.bool:
        return bool(value)
    if dtype.is_floating_point:
        return _rounded(torch.tensor(float(value), dtype=torch.float64), dtype).item()
    low, high = _limits(dtype)
    return (int(value) - low) % (high - low + 1) + low


def _quotient(lhs: Any, rhs: Any) -> Any:
    """Return the quotient of two numbers; integers drop the fraction."""
    if isinstance(lhs, float):
        return _floats(torch.true_divide, lhs, rhs)
    magnitude = abs(lhs) // abs(rhs)
    return magnitude if (lhs < 0) == (rhs < 0) else -magnitude


def _floor_quotient(lhs: Any, rhs: Any) -> Any:
    """Return the quotient of two numbers, rounded down."""
    return _floats(torch.floor_divide, lhs, rhs) if isinstance(lhs, float) else lhs // rhs


def _remainder(lhs: Any, rhs: Any) -> Any:
    """Return the remainder of two numbers, with the sign of the divisor."""
    return _floats(torch.remainder, lhs, rhs) if isinstance(lhs, float) else lhs % rhs


def _floats(meaning: Callable[..., Any], lhs: float, rhs: float) -> float:
    """Return what a function of torch makes of two numbers, infinite or NaN where Python would raise."""
    return meaning(torch.tensor(lhs, dtype=torch.float64), torch.tensor(rhs, dtype=torch.float64)).item()


def _smaller(lhs: Any, rhs: Any) -> Any:
    """Return the smaller of two numbers; NaN wins."""
    return lhs if lhs < rhs or lhs != lhs else rhs


def _larger(lhs: Any, rhs: Any) -> Any:
    """Return the larger of two numbers; NaN wins."""
    return lhs if lhs > rhs or lhs != lhs else rhs
