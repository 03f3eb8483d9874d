"""Examples of numbers: what one work item computes."""

from __future__ import annotations

from typing import Any

from tilewright.arrays import np
from tilewright.pto.examples.items import number


def _product(op: str, x: Any, y: Any, out: Any) -> Any:
    return np.array([int(x) * int(y)])


def _high_half(op: str, x: Any, y: Any, out: Any) -> Any:
    return np.array([int(x) * int(y) >> 32])


def _whole(op: str, x: Any, out: Any) -> Any:
    return np.rint([x])


def _bits(op: str, x: Any, out: Any) -> Any:
    return np.frombuffer(np.array([x], np.float32).tobytes(), np.int32)


def _permuted(op: str, a: Any, b: Any, digits: Any, out: Any) -> Any:
    pool = [int(each) >> 8 * place & 255 for each in (b, a) for place in range(4)]
    made = sum(pool[int(digits) >> 4 * place & 7] << 8 * place for place in range(4))
    return np.array([made - (made >> 31 << 32)])


_WIDE = "x: i32 in -2000000000..2000000000, y: i32 in -2000000000..2000000000"
NUMBERS = {
    "mulhi": number(_WIDE, "%r = {op} %x, %y signed -> i32", _high_half, "i32"),
    "mul_i32toi64": number(_WIDE, "%r = {op} %x, %y signed -> i64", _product, "i64"),
    "prmt": number(
        "a: i32 in 0..2000000000, b: i32 in 0..2000000000, digits: i32 in 0..12339",
        "%r = {op} %a, %b, %digits -> i32",
        _permuted,
        "i32",
    ),
    "convert": number("x: f32", "%r = {op} %x round(r) sat signed -> i32", _whole, "i32"),
    "bitcast": number("x: f32", "%r = {op} %x : f32 to i32", _bits, "i32"),
}
"""Kernels by the op that they run."""
