"""Sums into memory that others add to at the same time: element by element, each in one step."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

from tilewright.dtypes import BF16, FP16, FP32, FP64, INT8, INT16, INT32, INT64, DataType
from tilewright.native.loader import load
from tilewright.native.threads import emitted

_TYPES = {FP16: "half", BF16: "bfloat", FP32: "float", FP64: "double"} | {
    each: f"i{each.bits}" for each in (INT8, INT16, INT32, INT64)
}

_TEXT = """
define void @added(ptr %into, ptr %from, i64 %count) nounwind {{
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %to = getelementptr {type}, ptr %into, i64 %i
  %at = getelementptr {type}, ptr %from, i64 %i
  %value = load {type}, ptr %at
  %was = atomicrmw {add} ptr %to, {type} %value monotonic
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def add(dtype: DataType, into: int, shape: Sequence[int], strides: Sequence[int], packed: int) -> None:
    """Add packed elements at one address to those at another, which lie so many bytes apart."""
    added, size = _adder(dtype), dtype.get_byte()
    axes = [[number * stride for number in range(extent)] for extent, stride in zip(shape, strides, strict=True)]
    run = len(axes.pop()) if strides and strides[-1] == size else 1
    for number, steps in enumerate(product(*axes)):
        added(into + sum(steps), packed + number * run * size, run)


@cache
def _adder(dtype: DataType) -> Callable[[int, int, int], Any]:
    """Return what adds so many elements that lie at the second address to those at the first."""
    text = _TEXT.format(type=_TYPES[dtype], add="fadd" if dtype.is_float() else "add")
    return load(emitted(text)).function("added", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
