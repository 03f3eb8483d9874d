"""Triton IR that is computed while it is written, by NumPy: floats of 32 bits, rounded as a GPU rounds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.backends.cuda.ttir.elements import Elements
from tilewright.dtypes import FP32

TYPES: dict[str, Any] = {"f32": np.float32, "i32": np.int32, "i1": np.bool_}


class Computed(NamedTuple):
    """A value, and what it is."""

    array: Any
    element: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


def fused(a: Any, b: Any, c: Any) -> Any:
    return (a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)).astype(np.float32)


OPERATIONS: dict[str, Any] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.minnumf": np.fmin,
    "math.absf": np.abs, "math.fma": fused, "tt.precise_divf": np.divide, "arith.addi": np.add,
    "arith.shli": np.left_shift, "arith.ori": np.logical_or,
    "cmpf olt": np.less, "cmpf ogt": np.greater, "cmpf oeq": np.equal, "cmpf une": np.not_equal,
}  # fmt: skip


def inverse(x: Any) -> Any:
    return np.nextafter(np.float32(1) / x, np.float32(np.inf))


def power(x: Any) -> Any:
    return np.exp2(x) * np.float32(1 + 2.0**-22)


INSTRUCTIONS = {"rcp.approx.ftz.f32 $0, $1;": inverse, "ex2.approx.ftz.f32 $0, $1;": power}
"""What instructions do, as far off as they may be."""


class Numbers:
    """A text of which every line is computed at once."""

    def simple(self, name: str, *operands: Computed) -> Computed:
        with np.errstate(all="ignore"):
            return Computed(OPERATIONS[name](*(each.array for each in operands)), operands[0].element)

    def compare(self, predicate: str, lhs: Computed, rhs: Computed) -> Computed:
        return Computed(OPERATIONS[predicate](lhs.array, rhs.array), "i1")

    def select(self, condition: Computed, then: Computed, other: Computed) -> Computed:
        return Computed(np.where(condition.array, then.array, other.array), then.element)

    def bits(self, value: Computed, element: str) -> Computed:
        return Computed(value.array.view(TYPES[element]), element)

    def machine(self, instruction: str, value: Computed) -> Computed:
        with np.errstate(all="ignore"):
            return Computed(INSTRUCTIONS[instruction](value.array), value.element)

    def integer(self, number: int, element: str, shape: Sequence[int]) -> Computed:
        return Computed(np.full(shape, number, TYPES[element]), element)

    def constant(self, literal: str, element: str, shape: Sequence[int] = ()) -> Computed:
        bits: Any = np.full(shape, int(literal, 16), np.uint32)
        return Computed(bits.view(np.float32), element)

    def shaped(self, name: str, value: Computed, shape: Sequence[int]) -> Computed:
        assert name == "tt.broadcast"
        return Computed(np.broadcast_to(value.array, shape), value.element)


def numbers(array: Any, narrow: Any = None, *, is_rough: bool = False) -> Elements:
    """Return floats as elements that are computed with at once."""
    few: Any = None if narrow is None else Computed(narrow, "f32")
    text: Any = Numbers()
    value: Any = Computed(np.asarray(array, np.float32), "f32")
    return Elements(text, value, FP32, narrow=few, is_rough=is_rough)


def array_of(elements: Elements) -> Any:
    """Return what elements are, as fp64."""
    value: Any = elements.value
    return value.array.astype(np.float64)
