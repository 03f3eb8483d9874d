"""Examples of numbers: what one work item computes."""

from __future__ import annotations

from typing import Any

from tilewright.arrays import np
from tilewright.pto.examples.items import number


def _meant(op: str, *given: Any) -> Any:
    """Return what NumPy says an op makes of numbers."""
    name, x, *more = op.partition(".")[2], *given[:-1]
    if name == "fma":
        return np.array([x * more[0] + more[1]])
    if name in ("mulhi", "mul_i32toi64"):
        return np.array([int(x) * int(more[0]) >> (32 if name == "mulhi" else 0)])
    if name == "round":
        return np.trunc([x + np.copysign(0.5, x)])
    if name == "bitcast":
        return np.frombuffer(np.array([x], np.float32).tobytes(), np.int32)
    named = {"absf": "abs", "pow": "power", "fmin": "minimum", "fmax": "maximum", "convert": "rint"}
    return np.array([getattr(np, named.get(name, name))(x, *more)])


def _permuted(op: str, a: Any, b: Any, digits: Any, out: Any) -> Any:
    pool = [int(each) >> 8 * place & 255 for each in (b, a) for place in range(4)]
    made = sum(pool[int(digits) >> 4 * place & 7] << 8 * place for place in range(4))
    return np.array([made - (made >> 31 << 32)])


_PAIR = "%r = {op} %x, %y -> f32"
_WIDE = "x: i32 in -2000000000..2000000000, y: i32 in -2000000000..2000000000"
NUMBERS = {
    **dict.fromkeys("absf ceil floor rint round".split(), number("x: f32", "%r = {op} %x -> f32", _meant)),
    **dict.fromkeys("sqrt exp log".split(), number("x: f32 in 1..9", "%r = {op} %x -> f32", _meant)),
    **dict.fromkeys("fmin fmax".split(), number("x: f32, y: f32", _PAIR, _meant)),
    "pow": number("x: f32 in 1..9, y: f32 in 1..3", _PAIR, _meant),
    "fma": number("x: f32, y: f32, z: f32", "%r = {op} %x, %y, %z -> f32", _meant),
    "mulhi": number(_WIDE, "%r = {op} %x, %y signed -> i32", _meant, "i32"),
    "mul_i32toi64": number(_WIDE, "%r = {op} %x, %y signed -> i64", _meant, "i64"),
    "prmt": number(
        "a: i32 in 0..2000000000, b: i32 in 0..2000000000, digits: i32 in 0..12339",
        "%r = {op} %a, %b, %digits -> i32",
        _permuted,
        "i32",
    ),
    "convert": number("x: f32", "%r = {op} %x round(r) sat signed -> i32", _meant, "i32"),
    "bitcast": number("x: f32", "%r = {op} %x : f32 to i32", _meant, "i32"),
}
"""Kernels by the op that they run."""
