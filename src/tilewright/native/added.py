"""Sums into memory that others add to at the same time: element by element, each in one step."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

from tilewright.arrays import np
from tilewright.dtypes import BF16, FP16, FP32, FP64, INT8, INT16, INT32, INT64, DataType
from tilewright.native.loader import load
from tilewright.native.threads import emitted

_TYPES = {FP32: "float", FP64: "double"} | {each: f"i{each.bits}" for each in (INT8, INT16, INT32, INT64)}
_NARROW = FP16, BF16
"""Floats that not every processor adds: NumPy does, and what it makes takes the place of what it saw."""

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

_SWAP = """
define i64 @swapped(ptr %into, ptr %seen, ptr %made, i64 %count) nounwind {
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %loop, label %none
none:
  ret i64 0
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %failed = phi i64 [ 0, %entry ], [ %more.failed, %loop ]
  %to = getelementptr i16, ptr %into, i64 %i
  %seen.at = getelementptr i16, ptr %seen, i64 %i
  %made.at = getelementptr i16, ptr %made, i64 %i
  %old = load i16, ptr %seen.at
  %new = load i16, ptr %made.at
  %pair = cmpxchg ptr %to, i16 %old, i16 %new monotonic monotonic
  %was = extractvalue { i16, i1 } %pair, 0
  %is.done = extractvalue { i16, i1 } %pair, 1
  store i16 %was, ptr %seen.at
  %is.left = xor i1 %is.done, true
  %one = zext i1 %is.left to i64
  %more.failed = add i64 %failed, %one
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret i64 %more.failed
}
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
    if dtype in _NARROW:
        return partial(_add_narrow, dtype)
    text = _TEXT.format(type=_TYPES[dtype], add="fadd" if dtype.is_float() else "add")
    return load(emitted(text)).function("added", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def _add_narrow(dtype: DataType, into: int, packed: int, count: int) -> None:
    """Add floats of two bytes each: what somebody else has changed meanwhile is added again, one by one."""
    held: Any = np.array(_elements(dtype, into, count))
    made: Any = held + _elements(dtype, packed, count)
    was: Any = held.view(np.int16).copy()
    if _swapper()(into, was.ctypes.data, made.ctypes.data, count):
        changed: list[int] = np.flatnonzero(was != held.view(np.int16)).tolist()
        for index in changed:
            _add_narrow(dtype, into + 2 * index, packed + 2 * index, 1)


def _elements(dtype: DataType, at: int, count: int) -> Any:
    memory: Any = (ctypes.c_char * (dtype.get_byte() * count)).from_address(at)
    return np.frombuffer(memory, dtype.numpy)


@cache
def _swapper() -> Callable[[int, int, int, int], int]:
    """Return what lets elements be others where they are what was seen, and leaves there what they were."""
    return load(emitted(_SWAP)).function("swapped", ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64)
