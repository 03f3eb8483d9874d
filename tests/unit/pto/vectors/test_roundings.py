"""Roundings: every pair that `vcvt` brings to shorter floats, in each of its ways, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isinf
from typing import Any

import ml_dtypes
import pytest
from unit.pto.vectors.running import Array, built, np

TYPES: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i16": np.int16, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
DIGITS = {"f32": (24, 128), "f16": (11, 16), "bf16": (8, 128)}
"""The bits of a significand, and the exponent of what is too large."""
PAIRS = [("i16", "f16"), ("i32", "f32"), ("i64", "f32"), ("f32", "f16"), ("f32", "bf16"), ("bf16", "f16")]
MODES = "RAFCZO"
TEXT = """module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%x: !pto.ptr<{s}>, %o: !pto.ptr<{d}>) {{
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %len = arith.constant 256 : i64
    %a = pto.castptr %z : i64 -> !pto.ptr<{s}, ub>
    %b = pto.castptr %len : i64 -> !pto.ptr<{d}, ub>
    pto.mte_gm_ub %x, %a, %z, %len nburst(%one, %len, %len) : !pto.ptr<{s}>, !pto.ptr<{s}, ub>, i64, i64, i64, i64, i64
    pto.vecscope {{
      %m = pto.pset_b{sbits} "PAT_ALL" : !pto.mask<b{sbits}>
      %n = pto.pset_b{dbits} "PAT_ALL" : !pto.mask<b{dbits}>
      %v = pto.vlds %a[%c0] : !pto.ptr<{s}, ub> -> !pto.vreg<{slanes}x{s}>
      %r = pto.vcvt %v, %m {{{words}}} : !pto.vreg<{slanes}x{s}>, !pto.mask<b{sbits}> -> !pto.vreg<{dlanes}x{d}>
      pto.vsts %r, %b[%c0], %n : !pto.vreg<{dlanes}x{d}>, !pto.ptr<{d}, ub>, !pto.mask<b{dbits}>
    }}
    pto.mte_ub_gm %b, %o, %len nburst(%one, %len, %len) : !pto.ptr<{d}, ub>, !pto.ptr<{d}>, i64, i64, i64, i64
    return
  }}
}}
"""


def kernel(source: str, to: str, mode: str) -> str:
    """Return a kernel that converts all lanes, or as many as fit."""
    size, made = (np.dtype(TYPES[name]).itemsize for name in (source, to))
    words = [f'rnd = "{mode}"', *(['sat = "NOSAT"'] if "f" in source else []), *(['part = "EVEN"'] * (size != made))]
    bits = {"sbits": min(8 * size, 32), "dbits": 8 * made, "slanes": 256 // size, "dlanes": 256 // made}
    return TEXT.format(s=source, d=to, words=", ".join(words), **bits)


def numbers(source: str) -> Array:
    """Return as many numbers as a register holds: ties, limits, and whatever else."""
    dtype, rng = TYPES[source], np.random.default_rng(3)
    count = 256 // np.dtype(dtype).itemsize
    if "f" not in source:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        near = [sign * ((1 << bits) + more) for bits in range(63) for sign in (1, -1) for more in (-1, 0, 1, 3)]
        every = [low, high, low + 1, high - 1, *(n for n in near if low <= n <= high)]
        return np.array(rng.choice(np.array(every, np.int64), count), dtype)
    plain = (rng.normal(size=count) * 10.0 ** rng.integers(-9, 6, count)).astype(dtype)
    beyond = [
        65504,
        65519.996,
        65520,
        74240,
        1e30,
        3.4028235e38,
        3.39e38,
        -65520,
        -74240,
        2**-25,
        1 + 2**-11,
        1 + 2**-8,
        -0.0,
        0.0,
    ]
    plain[: len(beyond)] = np.array(beyond).astype(dtype)
    return plain


def rounded(number: float, digits: int, largest: int, mode: str) -> float:
    """Return a number as a float of so many digits, by arithmetic that loses nothing."""
    exact = Fraction(int(number) if isinstance(number, int) else number)
    size = abs(exact)
    if not size:
        return 0.0
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - 1, 1 - largest + 1)
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - digits + 1)
    down, rest = divmod(size, unit)
    up = down + (rest > 0)
    chosen = {
        "R": down + (2 * rest > unit or (2 * rest == unit and down % 2)), "A": down + (2 * rest >= unit),
        "F": up if exact < 0 else down, "C": down if exact < 0 else up, "Z": down, "O": down | (rest > 0),
    }[mode]  # fmt: skip
    made = int(chosen) * unit
    most = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** (largest - 1)
    if made > most:
        made = inf if mode in "RA" or (mode == "C") == (exact > 0) and mode in "FC" else most
    return -float(made) if exact < 0 else float(made)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_a_conversion_rounds_as_it_says(source: str, to: str, mode: str, target: str) -> None:
    x, made = numbers(source), np.full(256 // np.dtype(TYPES[to]).itemsize, -1, TYPES[to])
    built(kernel(source, to, mode), target)(1, x, made)
    step = max(1, len(made) // len(x))
    taken = x[:: max(1, len(x) // len(made))]
    exact = [n.item() if "f" not in source else float(n) for n in taken]
    wanted = [n if isinstance(n, float) and isinf(n) else rounded(n, *DIGITS[to], mode) for n in exact]
    found = made[::step].astype(np.float64)[: len(wanted)]
    np.testing.assert_array_equal(found, wanted, f"{mode} of {exact}")
    if "f" in source and "f" in to:
        signs = [np.signbit(n) for n in exact[: len(found)]]
        np.testing.assert_array_equal(np.signbit(found), signs, f"{mode} of {exact}")
