"""References: what ops of the families mean, said a second time without NumPy.

Floats are computed by torch in float64, integers one by one in Python, which has no width to overflow. An op that is
missing here still gets every check that needs no second opinion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.dtypes import BF16, FP16, FP64, DataType

Floats: TypeAlias = "Callable[..., torch.Tensor]"
Integers: TypeAlias = Callable[[int], int] | Callable[[int, int], int] | Callable[[int, int, int], int]

_torch: Any = torch  # its stubs leave most of these half typed


def _leaky(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return torch.where(x < 0, x * slope, x)


def _parametric(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, x * slope)


def _product_and_sum(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Return products and sums; those of numbers exactly, which torch has no type for."""
    finite = torch.isfinite(a) & torch.isfinite(b)
    rough = torch.where(finite & ~torch.isfinite(c), c, torch.addcmul(c, a, b))
    numbers = finite & torch.isfinite(c) & (rough != 0)
    held: list[list[float]] = [_torch.masked_select(each, numbers).tolist() for each in (a, b, c)]
    rough[numbers] = torch.tensor([_exact_sum(*each) for each in zip(*held, strict=True)], dtype=torch.float64)
    return rough


def _exact_sum(x: float, y: float, z: float) -> float:
    total = Fraction(x) * Fraction(y) + Fraction(z)
    return float(total) if abs(total) < 2**1024 - 2**970 else math.inf if total > 0 else -math.inf


def _part_way(start: torch.Tensor, end: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return what torch says that lerp is; its own fuses products of doubles with sums, on some machines."""
    return torch.where(weight.abs() < 0.5, start + weight * (end - start), end - (end - start) * (1 - weight))


ELEMENTWISE_FLOATS: dict[str, Floats] = {
    **{name: getattr(_torch, name) for name in ("add", "sub", "mul", "div", "maximum", "minimum", "fmod")},
    **{
        name: getattr(_torch, name)
        for name in ("neg", "abs", "exp", "log", "sqrt", "rsqrt", "relu", "sin", "cos", "tanh")
    },
    "recip": _torch.reciprocal,
    "lrelu": _leaky,
    "prelu": _parametric,
    "rem": _torch.remainder,
    "fma": _product_and_sum,
    "lerp": _part_way,
    **{name: getattr(_torch, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite")},
}


def _chain(step: Floats, dtype: DataType) -> Floats:
    """Return two steps from left to right, each of which rounds."""
    narrow = {FP16: torch.float16, BF16: torch.bfloat16, FP64: torch.float64}.get(dtype, torch.float32)

    def steps(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return step(step(a, b).to(narrow).double(), c)

    return steps


def elementwise_floats(dtype: DataType) -> dict[str, Floats]:
    """Return the meaning of each op on floats of a type; the caller rounds the result."""
    chains = {"addc": _chain(_torch.add, dtype), "subc": _chain(_torch.sub, dtype)}
    return {**ELEMENTWISE_FLOATS, **chains}


def elementwise_integers(bits: int) -> dict[str, Integers]:
    """Return the meaning of each op on integers of a width; the caller wraps the result."""
    return {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": quotient,
        "fmod": lambda a, b: a - b * quotient(a, b) if b else 0,
        "rem": lambda a, b: a % b if b else 0,
        "addc": lambda a, b, c: a + b + c,
        "subc": lambda a, b, c: a - b - c,
        "maximum": lambda a, b: max(a, b),
        "minimum": lambda a, b: min(a, b),
        "neg": lambda a: -a,
        "abs": lambda a: max(a, -a),
        "relu": lambda a: max(a, 0),
        "and_": lambda a, b: a & b,
        "or_": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not_": lambda a: -a - 1,
        "shl": lambda a, b: a * 2 ** (b % bits),
        "shr": lambda a, b: a // 2 ** (b % bits),
        "fma": lambda a, b, c: a * b + c,
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
        "isnan": lambda a: False,
        "isinf": lambda a: False,
        "isfinite": lambda a: True,
    }


def quotient(a: int, b: int) -> int:
    """Return a / b without its fraction; nothing divided by zero is zero."""
    sign = -1 if (a < 0) != (b < 0) else 1
    return sign * (abs(a) // abs(b)) if b else 0


def _exp_of_difference(x: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    return torch.exp(x - vec)


def _repeat(x: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    return vec.expand_as(x)


_EXPANSIONS: dict[str, Floats] = {
    "expand": _repeat,
    "expand_add": _torch.add,
    "expand_sub": _torch.sub,
    "expand_mul": _torch.mul,
    "expand_div": _torch.div,
    "expand_max": _torch.maximum,
    "expand_min": _torch.minimum,
    "expand_expdif": _exp_of_difference,
}
_EXPANSION_INTEGERS: dict[str, Integers] = {
    "expand": lambda x, vec: vec,
    "expand_add": lambda x, vec: x + vec,
    "expand_sub": lambda x, vec: x - vec,
    "expand_mul": lambda x, vec: x * vec,
    "expand_max": lambda x, vec: max(x, vec),
    "expand_min": lambda x, vec: min(x, vec),
}
_REDUCTIONS: dict[str, Floats] = {"sum": _torch.sum, "prod": _torch.prod, "max": _torch.amax, "min": _torch.amin}
_REDUCTION_INTEGERS: dict[str, Callable[[Sequence[int]], int]] = {"sum": sum, "prod": math.prod, "max": max, "min": min}

ROW, COLUMN = ("row", -1), ("col", -2)

EXPANSION_FLOATS = {f"{side}_{name}": f for side, _ in (ROW, COLUMN) for name, f in _EXPANSIONS.items()}
EXPANSION_INTEGERS = {f"{side}_{name}": f for side, _ in (ROW, COLUMN) for name, f in _EXPANSION_INTEGERS.items()}
REDUCTION_FLOATS: dict[str, Floats] = {
    f"{side}_{name}": partial(f, dim=axis, keepdim=True)
    for side, axis in (ROW, COLUMN)
    for name, f in _REDUCTIONS.items()
}
REDUCTION_INTEGERS = {f"{side}_{name}": f for side, _ in (ROW, COLUMN) for name, f in _REDUCTION_INTEGERS.items()}


def _rounded_sums(x: torch.Tensor) -> torch.Tensor:
    """Return the sums of fp16 columns, which round after every addition."""
    total = torch.zeros_like(x[..., 0:1, :])
    for row in range(x.shape[-2]):
        total = (total + x[..., row : row + 1, :]).half().double()
    return total


def in_torch(values: NDArray[Any]) -> torch.Tensor:
    """Return elements as torch computes with them here."""
    return torch.tensor(values.astype(np.float64).tolist(), dtype=torch.float64)


def table(family: str, dtype: DataType) -> Mapping[str, Callable[..., Any]]:
    """Return the references of a family for elements of `dtype`, by op name."""
    if family == "reduction" and dtype == FP16:
        return {**REDUCTION_FLOATS, "col_sum": _rounded_sums}
    if dtype.is_float():
        return {"elementwise": elementwise_floats(dtype), "expansion": EXPANSION_FLOATS, "reduction": REDUCTION_FLOATS}[
            family
        ]
    if family == "elementwise":
        return elementwise_integers(dtype.bits)
    return {"expansion": EXPANSION_INTEGERS, "reduction": REDUCTION_INTEGERS}[family]
