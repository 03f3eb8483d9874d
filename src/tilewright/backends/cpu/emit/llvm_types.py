"""LLVM types of elements: what they are in memory, what they are computed in, and constants of them."""

from __future__ import annotations

from typing import Any

from tilewright.arrays import np
from tilewright.dtypes import BOOL, FP64, DataType
from tilewright.native.llvm import F32, F64, I1, Value, vector

_MEMORY = {
    "fp64": F64,
    "fp32": "float",
    "fp16": "half",
    "bfloat16": "i16",
    "bool": "i8",
    "index": "i64",
    "task_id": "i64",
}


def memory_type(dtype: DataType) -> str:
    """Return how an element lies in memory."""
    return _MEMORY.get(dtype.name) or f"i{max(dtype.bits, 8)}"


def compute_type(dtype: DataType) -> str:
    """Return what an element is computed in."""
    if dtype == FP64:
        return F64
    return F32 if dtype.is_float() else I1 if dtype == BOOL else memory_type(dtype)


def literal(dtype: DataType, number: float, count: int) -> Value:
    """Return a constant in every lane."""
    if dtype.is_float():
        exact: Any = np.float64(number if dtype == FP64 else np.float32(number))
        text = f"0x{int(exact.view(np.uint64)):016X}"
    elif dtype == BOOL:
        text = "true" if number else "false"
    else:
        wrapped = int(number) & ((1 << dtype.bits) - 1)
        text = str(wrapped - (1 << dtype.bits) if wrapped >> (dtype.bits - 1) else wrapped)
    return repeated(compute_type(dtype), text, count)


def repeated(type_: str, text: str, count: int) -> Value:
    """Return a constant vector of equal elements, or the element itself for one lane."""
    return Value(vector(type_, count), text if count == 1 else f"splat ({type_} {text})")
